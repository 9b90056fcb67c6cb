// From a configuration to what a run is made of: device, model files, tokenizer, plan of weights.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "offload/cache_offload.hpp"
#include "runtime/apps/run_config.hpp"
#include "runtime/device/device.hpp"
#include "runtime/engine/generator.hpp"
#include "runtime/model/model_files.hpp"
#include "runtime/model/weight_plan.hpp"
#include "runtime/text/tokenizer.hpp"

namespace hydrant {

// What a model's files say; no weight has been read.
struct Model {
  ModelFiles files;
  ModelSpec spec;
  WeightSources sources;
  bool has_weights() const { return files.checkpoint.is_readable(); }
};
Model open_described_model(const std::string& path);
// The same, and the configuration is one that the model can run. Throws bad_config otherwise.
Model open_described_model(const RunConfig& config, const Sources& sources);
// The same, but the path may also be a model's config.json alone: a shape without weights.
Model open_model_or_shape(const RunConfig& config, const Sources& sources);

// The configuration's synthetic shape, its weights made up. What means nothing has no length that
// it was trained for: there are places for `positions` at least. Throws bad_config naming the
// shapes that are known.
Model open_synthetic(const RunConfig& config, const Sources& sources, int64_t positions);
std::unique_ptr<text::Tokenizer> open_tokenizer(const ModelFiles& files);

std::unique_ptr<Device> open_device(const RunConfig& config);
// The processor as a second device, where caches want one beside `device`; else null.
std::unique_ptr<Device> open_host(const Device& device, const CacheOffload& caches);
WeightPlan plan_weights(const Model& model, Device& device, const RunConfig& config);

// Those in configs/models, which lie in the program.
struct KnownShape {
  std::string_view name, text;
};
const std::vector<KnownShape>& known_shapes();

BatchShape batch_shape(const BatchConfig& batch);

}  // namespace hydrant
