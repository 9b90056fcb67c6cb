#include "runtime/apps/assemble.hpp"

#include <algorithm>

#include "models/registry.hpp"
#include "offload/offloaded_caches.hpp"
#include "runtime/backends/registry.hpp"
#include "runtime/base/error.hpp"
#include "runtime/model/shape.hpp"

namespace hydrant {
namespace {

// `positions`: at least so many.
Model model_of(ModelFiles files, int64_t positions = 0) {
  Model model{std::move(files), {}, {}};
  const ModelFamily& family =
      find_family(model.files.architecture, model.files.kind, model.files.description);
  model.spec = describe(family, model.files);
  model.spec.max_positions = int32_t(std::max<int64_t>(model.spec.max_positions, positions));
  model.sources = family.sources(model.spec, model.files.kind);
  return model;
}

void check_for(const Model& model, const RunConfig& config, const Sources& sources) {
  if (config.cache.positions == "cache" && model.spec.block.rotary.dims == 0)
    fail(Fault::bad_config,
         "{}: must be original for {}: places within the cache need rotary embedding, which {} "
         "models do not have",
         sources.name("cache.positions"), model.files.path, model.spec.family);
  const size_t budgets = config.cache.layer_budgets.size();
  if (budgets > 0 && budgets != size_t(model.spec.layers))
    fail(Fault::bad_config, "{}: must be one for each of the model's {} layers, there are {}",
         sources.name("cache.layer_budgets"), model.spec.layers, budgets);
}

ModelFiles open_named_shape(const std::string& shape, const Sources& sources) {
  std::string names;
  for (const KnownShape& known : known_shapes()) {
    if (known.name == shape) return read_shape(shape, std::string(known.text));
    names += fmt::format("{}{}", names.empty() ? "" : ", ", known.name);
  }
  if (is_shape(shape)) return open_shape(shape);
  fail(Fault::bad_config, "{}: must be one of {}, or the path of a config.json, not '{}'",
       sources.name("synthetic"), names, shape);
}

}  // namespace

Model open_described_model(const std::string& path) { return model_of(open_model(path)); }

Model open_described_model(const RunConfig& config, const Sources& sources) {
  Model model = open_described_model(config.model);
  check_for(model, config, sources);
  return model;
}

Model open_model_or_shape(const RunConfig& config, const Sources& sources) {
  if (!is_shape(config.model)) return open_described_model(config, sources);
  Model model = model_of(open_shape(config.model));
  model.files.checkpoint = shape_tensors(model.sources, shape_dtype(model.files));
  check_for(model, config, sources);
  return model;
}

Model open_synthetic(const RunConfig& config, const Sources& sources, int64_t positions) {
  const SyntheticConfig& asked = config.synthetic;
  Model model = model_of(open_named_shape(asked.shape, sources), positions);
  const DType format =
      asked.format == "auto" ? shape_dtype(model.files) : dtype_named(asked.format).value();
  model.files.checkpoint = synthetic_tensors(model.files.path, model.sources, format, config.seed);
  check_for(model, config, sources);
  return model;
}

std::unique_ptr<text::Tokenizer> open_tokenizer(const ModelFiles& files) {
  if (files.kind == FileKind::hugging_face)
    return text::load_tokenizer_json(files.path + "/tokenizer.json");
  const GgufTokenizer& t = files.tokenizer;
  return text::make_gguf_tokenizer({files.path, t.model, t.pre, t.tokens, t.scores, t.types,
                                    t.merges, t.bos, t.eos, t.unknown, t.add_bos, t.add_eos,
                                    t.add_space_prefix});
}

std::unique_ptr<Device> open_device(const RunConfig& config) {
  return open_device(config.device, {config.threads, config.isa});
}

std::unique_ptr<Device> open_host(const Device& device, const CacheOffload& caches) {
  if (!OffloadedCaches::wants_host(device, caches)) return nullptr;
  return open_device("cpu", {caches.host_threads, ""});
}

WeightPlan plan_weights(const Model& model, Device& device, const RunConfig& config) {
  return plan_weights(model.files.checkpoint, model.spec, model.sources, device.ops(),
                      config.compute_dtype == "f32");
}

BatchShape batch_shape(const BatchConfig& batch) {
  return {batch.rows_per_group, batch.groups, batch.prefill_chunk, batch.prefill_tokens};
}

}  // namespace hydrant
