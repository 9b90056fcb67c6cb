// What the lanes of a run did when. Nothing is kept until begin().
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hydrant::trace {

using Clock = std::chrono::steady_clock;

struct Span {
  std::string lane, name;
  Clock::time_point begin, end;
  uint64_t bytes = 0;  // moved; 0: none are
};

bool on();
void begin();
void add(Span span);  // from any thread; drops what comes after the first kMostSpans
// All spans so far, in the format of Chrome's trace viewer (JSON), times counted from begin().
// `dropped` is how many there were beside them.
std::string chrome_json(size_t& dropped);

inline constexpr std::string_view kBeginning = "{\"displayTimeUnit\": ";
inline constexpr size_t kMostSpans = 4'000'000;

}  // namespace hydrant::trace
