#include "runtime/apps/loaded_model.hpp"

#include <chrono>
#include <string>

#include "runtime/apps/interrupt.hpp"
#include "runtime/apps/progress.hpp"
#include "runtime/base/error.hpp"

namespace hydrant {

LoadedModel::LoadedModel(const Model& model, Device& device, RunPlan plan, bool quiet)
    : model_(model), device_(device), plan_(std::move(plan)) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  Progress bar("loading", quiet, std::chrono::seconds(1));
  const LoadProgress progress = [&](uint64_t done, uint64_t total) {
    if (interrupted()) throw Interrupted{};
    const double share = total > 0 ? double(done) / double(total) : 1;
    bar.show(share, time_left_text(share, seconds()));
  };
  const Checkpoint& file = model.files.checkpoint;
  try {
    if (plan_.weights_move()) {
      streamed_ = std::make_unique<WeightPrefetcher>(file, model.spec, plan_.weights, device,
                                                     plan_.offload, progress);
    } else {
      resident_.emplace(load_weights(file, model.spec, plan_.weights, device, progress));
      resident_feed_ = std::make_unique<ResidentWeights>(device.ops(), *resident_);
    }
  } catch (const Error& e) {  // what a device says of a copy does not say of what
    if (e.fault() != Fault::io) throw;
    throw Error(e.fault(), std::string("loading weights: ") + e.what());
  }
  // They all take one way to the device.
  Link* up = streamed_ ? &streamed_->link() : nullptr;
  if (plan_.caches_move()) {
    host_ = open_host(device, plan_.caches);
    caches_ = std::make_unique<OffloadedCaches>(device, plan_.caches, up, host_.get());
    up = &caches_->up();
  }
  if (plan_.hidden_moves()) hidden_ = std::make_unique<OffloadedHidden>(plan_.hidden, up);
  load_seconds_ = seconds();
}

Generator LoadedModel::generator(BatchShape shape, DType kv_dtype) {
  WeightFeed& feed = streamed_ ? static_cast<WeightFeed&>(*streamed_) : *resident_feed_;
  return Generator(device_, model_.spec, feed, shape, kv_dtype, caches_.get(), hidden_.get());
}

}  // namespace hydrant
