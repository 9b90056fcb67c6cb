// A stretch of a lane's work, noted in the trace if there is one.
#pragma once
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "runtime/base/trace.hpp"
#include "runtime/device/stream.hpp"

namespace hydrant {

// What is enqueued on the lane while one lives is the span. Work that does not come to its end has
// none. Costs nothing while nothing is traced.
class Traced {
 public:
  template <class... Args>
  Traced(Stream& lane, uint64_t bytes, fmt::format_string<Args...> name, Args&&... args)
      : lane_(lane) {
    if (trace::on()) start(bytes, fmt::format(name, std::forward<Args>(args)...));
  }
  ~Traced() {
    if (span_) end();
  }
  Traced(const Traced&) = delete;
  Traced& operator=(const Traced&) = delete;

 private:
  void start(uint64_t bytes, std::string name);
  void end();

  Stream& lane_;
  std::shared_ptr<trace::Span> span_;
};

}  // namespace hydrant
