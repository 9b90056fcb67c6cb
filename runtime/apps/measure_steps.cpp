#include <array>
#include <cstring>
#include <memory>

#include "offload/cost_model.hpp"
#include "runtime/apps/measure.hpp"
#include "runtime/base/aligned.hpp"
#include "runtime/engine/generator.hpp"

namespace hydrant {
namespace {

constexpr int32_t kLayers = 16, kPromptLength = 512, kShortPrompt = 16, kTokens = 20;
constexpr std::array<int32_t, 5> kRows{1, 4, 8, 16, 32};

ModelSpec made_up() {
  ModelSpec spec;
  spec.family = "made up";
  spec.layers = kLayers;
  spec.hidden = spec.embedding = 768;
  spec.vocab = 1024;
  spec.max_positions = 4096;
  BlockSpec& b = spec.block;
  b.heads = 12;
  b.kv_heads = 4;
  b.head_dim = 64;
  b.ffn = 2048;
  b.norm = NormKind::rms;
  b.activation = Activation::silu;
  b.gated = true;
  b.rotary.dims = b.head_dim;
  b.rotary.inverse_frequency.assign(size_t(b.head_dim / 2), 1e-2);
  return spec;
}

WeightPlan weights_of(const ModelSpec& spec, const Ops& ops) {
  const BlockSpec& b = spec.block;
  const int64_t h = spec.hidden, q = b.heads * b.head_dim, kv = b.kv_heads * b.head_dim;
  WeightPlan plan;
  const auto add = [&](int stage, Matrix role, int64_t n, int64_t k) {
    MatrixPlan& m = plan.matrices.emplace_back();
    m.source.stage = stage;
    m.source.role = role;
    m.source.n = n;
    m.source.k = k;
    m.weight = {nullptr, DType::q8_0, Activations::int8, n, k, ops.panel_bytes(DType::q8_0, k)};
    m.offset = plan.bytes;
    plan.bytes += align_up(size_t(n / kPanelRows) * m.weight.panel_bytes, size_t{64});
  };
  for (int stage = 1; stage <= spec.layers; stage++) {
    add(stage, Matrix::q, q, h);
    add(stage, Matrix::k, kv, h);
    add(stage, Matrix::v, kv, h);
    add(stage, Matrix::out, h, q);
    add(stage, Matrix::gate, b.ffn, h);
    add(stage, Matrix::up, b.ffn, h);
    add(stage, Matrix::down, h, b.ffn);
  }
  add(spec.stages() - 1, Matrix::head, spec.vocab, h);
  return plan;
}

// Weights that mean nothing, of their own in each layer: what is read comes from memory.
class MadeUpWeights final : public WeightFeed {
 public:
  MadeUpWeights(Device& device, const ModelSpec& spec, const WeightPlan& plan)
      : ops_(device.ops()),
        stages_(size_t(spec.stages())),
        memory_(device.allocate(Memory::device, plan.bytes, "weights to measure steps with")),
        ones_(device.allocate(Memory::device, size_t(spec.hidden) * sizeof(float), "a norm")) {
    const auto stream = device.make_stream("compute", /*inline_work=*/true);
    const std::vector<float> ones(size_t(spec.hidden), 1.0f);
    stream->copy(ones_.data(), ones.data(), ones_.bytes());
    const ConstTensor gain(ones_.data(), DType::f32, {spec.hidden});
    for (LayerWeights& stage : stages_)
      for (const Vector role : {Vector::norm1_gain, Vector::norm2_gain, Vector::final_gain})
        stage.vectors[size_t(role)] = gain;
    for (const MatrixPlan& m : plan.matrices) {
      std::byte* const at = static_cast<std::byte*>(memory_.data()) + m.offset;
      const std::vector<std::byte> packed = panels(m.weight);
      stream->copy(at, packed.data(), packed.size());
      Weight& w = stages_[size_t(m.source.stage)].matrices[size_t(m.source.role)];
      w = m.weight;
      w.panels = at;
    }
    stream->synchronize();
  }

  void prefetch(int) override {}
  LayerWeights acquire(int stage, Stream&) override { return stages_[size_t(stage)]; }
  void look_up(Matrix, EmbedArgs args, Stream& reader) override {
    args.table = stages_.back()[Matrix::head];
    ops_.embed(reader, args);
  }
  void release(int, Stream&) override {}

 private:
  std::vector<std::byte> panels(const Weight& w) const {
    const std::vector<std::byte> row(size_t(row_bytes(w.format, w.k)), std::byte{0x2c});
    const std::vector<const std::byte*> rows(size_t(kPanelRows), row.data());
    std::vector<std::byte> all(size_t(w.n / kPanelRows) * w.panel_bytes);
    for (size_t at = 0; at < all.size(); at += w.panel_bytes)
      ops_.pack_panel(w.format, w.k, rows, all.data() + at);
    return all;
  }

  Ops& ops_;
  std::vector<LayerWeights> stages_;
  Buffer memory_, ones_;
};

}  // namespace

// What a running step takes beside its products and its attention, as the model of costs has them:
// small operations, and that what one operation leaves in the caches is not what the next one
// reads.
void measure_steps(Device& device, MachineRates& rates, const Measuring& measuring) {
  measuring("whole steps");
  const ModelSpec spec = made_up();
  const WeightPlan plan = weights_of(spec, device.ops());
  const WeightLayout layout(plan, spec, {});
  MadeUpWeights weights(device, spec, plan);
  rates.block = {{{1, 0}}, Curve::Beyond::straight};
  const auto beside = [&](int32_t rows, int32_t prompt, int32_t tokens) {
    CostSetup setup;
    setup.spec = &spec;
    setup.weights = &layout;
    setup.rows_per_group = rows;
    setup.threads = device.threads();
    Request request;
    request.prompt.assign(size_t(prompt), 1);
    request.max_new_tokens = tokens;
    request.plans.assign(size_t(spec.layers), {.slots = {prompt + tokens, 0, 0}});
    const std::vector<Request> requests(size_t(rows), request);
    BatchShape shape;
    shape.rows_per_group = rows;
    Generator generator(device, spec, weights, shape, DType::bf16);
    const Prediction parts = CostModel(rates, setup).run({rows, prompt, tokens, request.plans});
    std::vector<double> seconds;
    for (int pass = 0; pass <= kRounds; pass++) {
      const RunFigures f = generator.run(requests, {});
      if (pass > 0) seconds.push_back(tokens > 1 ? f.decode_seconds : f.prefill_seconds);
    }
    const double whole = median(std::move(seconds)),
                 known = tokens > 1 ? parts.decode.compute() : parts.prefill.compute(),
                 passes = tokens > 1 ? tokens - 1 : double(prompt) / setup.prefill_chunk;
    return std::max(whole - known, 0.0) / passes / spec.layers;
  };
  Curve block{{}, Curve::Beyond::straight};
  const double row = double(CostModel::block_elements(spec));
  for (const int32_t rows : kRows)
    block.points.emplace_back(rows * row, beside(rows, kShortPrompt, kTokens));
  block.points.emplace_back(CostSetup().prefill_chunk * row, beside(1, kPromptLength, 1));
  rates.block = std::move(block);
}

}  // namespace hydrant
