// From a configuration to something that runs: device, model files, tokenizer, weights, generator.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/apps/run_config.hpp"
#include "runtime/device/device.hpp"
#include "runtime/engine/generator.hpp"
#include "runtime/engine/resident_feed.hpp"
#include "runtime/model/load_weights.hpp"
#include "runtime/model/model_files.hpp"
#include "runtime/text/tokenizer.hpp"

namespace hydrant {

// What a model's files say; no weight has been read.
struct Model {
  ModelFiles files;
  ModelSpec spec;
  WeightSources sources;
  bool has_weights() const { return !files.checkpoint.files().empty(); }
};
Model open_described_model(const std::string& path);
// The same, and the configuration is one that the model can run. Throws bad_config otherwise.
Model open_described_model(const RunConfig& config, const Sources& sources);
// The same, but the path may also be a model's config.json alone: a shape without weights.
Model open_model_or_shape(const RunConfig& config, const Sources& sources);
std::unique_ptr<text::Tokenizer> open_tokenizer(const ModelFiles& files);

std::unique_ptr<Device> open_device(const RunConfig& config);
WeightPlan plan_weights(const Model& model, Device& device, const RunConfig& config);

// A model's weights on its device. The model and the device must outlive it.
class LoadedModel {
 public:
  LoadedModel(const Model& model, Device& device, const RunConfig& config);
  LoadedModel(const LoadedModel&) = delete;
  LoadedModel& operator=(const LoadedModel&) = delete;

  Generator generator(BatchShape shape, DType kv_dtype);
  const WeightPlan& plan() const { return plan_; }
  size_t bytes() const { return weights_.bytes(); }
  double load_seconds() const { return load_seconds_; }

 private:
  const Model& model_;
  Device& device_;
  WeightPlan plan_;
  double load_seconds_ = 0;
  ModelWeights weights_;
  ResidentWeights feed_;
};

BatchShape batch_shape(const BatchConfig& batch);

}  // namespace hydrant
