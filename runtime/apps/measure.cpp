#include "runtime/apps/measure.hpp"

#include <algorithm>
#include <vector>

namespace hydrant {

double seconds_now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

double seconds_of_call(const std::function<void(size_t call)>& call) {
  using Clock = std::chrono::steady_clock;
  constexpr double kShortest = 4e-3;
  constexpr int kPasses = 3;
  size_t calls = 1, next = 0;
  const auto pass = [&] {
    const auto begin = Clock::now();
    for (size_t i = 0; i < calls; i++) call(next++);
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  for (double warm = pass(); warm < kShortest && calls < 1'000'000; warm = pass())
    calls =
        std::max(calls + 1, std::min(calls * 10, size_t(double(calls) * kShortest / warm * 1.2)));
  std::vector<double> seconds;
  for (int i = 0; i < kPasses; i++) seconds.push_back(pass() / double(calls));
  return median(std::move(seconds));
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ptrdiff_t(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace hydrant
