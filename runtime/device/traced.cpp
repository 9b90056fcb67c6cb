#include "runtime/device/traced.hpp"

namespace hydrant {

void Traced::start(uint64_t bytes, std::string name) {
  span_ = std::make_shared<trace::Span>();
  span_->lane = lane_.lane();
  span_->name = std::move(name);
  span_->bytes = bytes;
  lane_.fill(nullptr, 0, [span = span_] { span->begin = trace::Clock::now(); });
}

void Traced::end() {
  lane_.fill(nullptr, 0, [span = span_] {
    span->end = trace::Clock::now();
    trace::add(*span);
  });
}

}  // namespace hydrant
