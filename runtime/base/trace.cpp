#include "runtime/base/trace.hpp"

#include <map>
#include <mutex>
#include <utility>

#include "runtime/base/json.hpp"

namespace hydrant::trace {
namespace {

struct Record {
  std::mutex mutex;
  std::vector<Span> spans;
  size_t dropped = 0;
  Clock::time_point begin;
};

std::atomic<bool> recording{false};

Record& record() {
  static Record all;
  return all;
}

double microseconds(Clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

}  // namespace

bool on() { return recording.load(std::memory_order_relaxed); }

void begin() {
  Record& r = record();
  const std::lock_guard lock(r.mutex);
  r.spans.clear();
  r.dropped = 0;
  r.begin = Clock::now();
  recording = true;
}

void add(Span span) {
  Record& r = record();
  const std::lock_guard lock(r.mutex);
  if (r.spans.size() < kMostSpans)
    r.spans.push_back(std::move(span));
  else
    r.dropped++;
}

std::string chrome_json(size_t& dropped) {
  Record& r = record();
  const std::lock_guard lock(r.mutex);
  dropped = r.dropped;
  std::map<std::string, int> lanes;
  std::string text = std::string(kBeginning) + "\"ms\", \"traceEvents\": [\n";
  const auto event = [&](const Json& json) {
    text += json.dump(-1, ' ', false, Json::error_handler_t::replace) + ",\n";
  };
  for (const Span& s : r.spans) {
    const auto [lane, fresh] = lanes.emplace(s.lane, int(lanes.size()));
    if (fresh)
      event({{"ph", "M"},
             {"name", "thread_name"},
             {"pid", 0},
             {"tid", lane->second},
             {"args", {{"name", s.lane}}}});
    Json json{{"ph", "X"},
              {"name", s.name},
              {"cat", s.lane},
              {"pid", 0},
              {"tid", lane->second},
              {"ts", microseconds(s.begin - r.begin)},
              {"dur", microseconds(s.end - s.begin)}};
    if (s.bytes > 0) json["args"] = {{"bytes", s.bytes}};
    event(json);
  }
  event({{"ph", "M"}, {"name", "process_name"}, {"pid", 0}, {"args", {{"name", "hydrant"}}}});
  text.erase(text.size() - 2);  // the last comma
  return text + "\n]}\n";
}

}  // namespace hydrant::trace
