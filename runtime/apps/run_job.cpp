#include "runtime/apps/run_job.hpp"

#include <exception>

#include "runtime/apps/interrupt.hpp"

namespace hydrant {

JobEnd run_job(Generator& generator, std::span<const Request> requests, Listener listener) {
  std::exception_ptr failure;
  const auto guarded = [&failure](auto&& call) {
    if (failure) return;
    try {
      call();
    } catch (...) {
      failure = std::current_exception();
    }
  };
  Listener inner;
  inner.on_token = [&](size_t row, const TokenChoice& token) {
    bool go_on = !failure;
    guarded([&] { go_on = !listener.on_token || listener.on_token(row, token); });
    return go_on && !failure;
  };
  inner.on_done = [&](size_t row, Completion&& completion) {
    guarded([&] {
      if (listener.on_done) listener.on_done(row, std::move(completion));
    });
  };
  if (listener.on_logits)
    inner.on_logits = [&](size_t row, std::span<const float> logits) {
      guarded([&] { listener.on_logits(row, logits); });
    };
  inner.cancelled = [&] { return failure || interrupted(); };

  const Interruptible interruptible;
  const RunFigures figures = generator.run(requests, inner);
  if (failure) std::rethrow_exception(failure);
  return {figures, interrupted()};
}

}  // namespace hydrant
