#include "test/end_to_end/tiny_model.hpp"

#include <cmath>

#include "runtime/base/aligned.hpp"
#include "test/support/random.hpp"

namespace hydrant::test {
namespace {

constexpr int32_t kVocab = 61, kHidden = 32, kFfn = 48, kLayers = 2, kPositions = 96;

// Fills in what every family has; sizes are such that logits are a few units apart and attention is
// neither flat nor one-hot.
class Maker {
 public:
  Maker(TinyModel& model, uint64_t seed) : model_(model), random_(seed) {
    model_.stages.resize(size_t(model.spec.stages()));
  }

  void matrix(int stage, Matrix role, int64_t n, int64_t k, float gain = 1) {
    const float limit = gain * std::sqrt(3.0f / float(k));  // variance gain^2 / k
    model_.stages[size_t(stage)].matrices[role] = {n, k, random_.floats(n * k, -limit, limit)};
  }
  void vector(int stage, Vector role, int64_t n, float middle, float spread) {
    model_.stages[size_t(stage)].vectors[role] =
        random_.floats(n, middle - spread, middle + spread);
  }

  void norm(int stage, Vector gain, Vector bias) {
    vector(stage, gain, kHidden, 1, 0.3f);
    if (model_.spec.block.norm == NormKind::layer) vector(stage, bias, kHidden, 0, 0.2f);
  }

  void block(int stage, bool biased) {
    const BlockSpec& b = model_.spec.block;
    norm(stage, Vector::norm1_gain, Vector::norm1_bias);
    norm(stage, Vector::norm2_gain, Vector::norm2_bias);
    const int64_t q = int64_t{b.heads} * b.head_dim, kv = int64_t{b.kv_heads} * b.head_dim;
    matrix(stage, Matrix::q, q, kHidden, 1.2f);
    matrix(stage, Matrix::k, kv, kHidden, 1.2f);
    matrix(stage, Matrix::v, kv, kHidden);
    matrix(stage, Matrix::out, kHidden, q);
    if (b.gated) matrix(stage, Matrix::gate, b.ffn, kHidden);
    matrix(stage, Matrix::up, b.ffn, kHidden);
    matrix(stage, Matrix::down, kHidden, b.ffn);
    if (!biased) return;
    vector(stage, Vector::qkv_bias, model_.spec.qkv_width(), 0, 0.3f);
    vector(stage, Vector::out_bias, kHidden, 0, 0.3f);
    vector(stage, Vector::up_bias, b.ffn, 0, 0.3f);
    vector(stage, Vector::down_bias, kHidden, 0, 0.3f);
  }

  void whole(bool biased) {
    const ModelSpec& spec = model_.spec;
    const int head = spec.layers + 1;
    matrix(0, Matrix::tokens, spec.vocab, spec.embedding, std::sqrt(float(spec.embedding)));
    if (spec.learned_places)
      matrix(0, Matrix::places, spec.max_positions + spec.place_offset, kHidden,
             0.5f * std::sqrt(float(kHidden)));
    if (spec.embedding != spec.hidden) {
      matrix(0, Matrix::project_in, spec.hidden, spec.embedding);
      matrix(head, Matrix::project_out, spec.embedding, spec.hidden, 2);
    }
    for (int stage = 1; stage <= spec.layers; stage++) block(stage, biased);
    if (spec.final_norm) norm(head, Vector::final_gain, Vector::final_bias);
    if (spec.tied_head)
      model_.stages[size_t(head)].matrices[Matrix::head] =
          model_.stages[0].matrices[Matrix::tokens];
    else
      matrix(head, Matrix::head, spec.vocab, spec.embedding, 2);
  }

 private:
  TinyModel& model_;
  Random random_;
};

RotarySpec rotary(int32_t dims) {
  RotarySpec r{dims, {}};
  for (int32_t i = 0; i < dims; i += 2)
    r.inverse_frequency.push_back(std::pow(10000.0, -double(i) / double(dims)));
  return r;
}

ModelSpec spec_of(const std::string& kind) {
  ModelSpec s;
  s.family = kind;
  s.vocab = kVocab;
  s.hidden = s.embedding = kHidden;
  s.layers = kLayers;
  s.max_positions = kPositions;
  s.block = {.heads = 4, .kv_heads = 4, .head_dim = 8, .ffn = kFfn, .rotary = {}};
  if (kind == "opt" || kind == "opt-post") {
    s.learned_places = true;
    s.place_offset = 2;
    s.tied_head = true;
  }
  if (kind == "opt-post") {
    s.embedding = 24;
    s.final_norm = false;
    s.block.order = BlockOrder::post_norm;
  }
  if (kind == "llama") {
    s.block.kv_heads = 2;
    s.block.head_dim = 16;
    s.block.norm = NormKind::rms;
    s.block.activation = Activation::silu;
    s.block.gated = true;
    s.block.rotary = rotary(16);
  }
  if (kind == "neox" || kind == "neox-serial") {
    s.block.activation = Activation::gelu;
    s.block.rotary = rotary(4);
    if (kind == "neox") s.block.order = BlockOrder::parallel;
  }
  return s;
}

// Tensors in device memory, and beside them what they are to hold: both arenas are laid out alike.
struct Carving {
  Arena device, staged;
};

Weight pack(const TinyMatrix& m, Carving& to, const Ops& ops) {
  Weight w{.format = DType::f32, .n = m.n, .k = m.k};
  w.panel_bytes = ops.panel_bytes(DType::f32, m.k);
  const int64_t panels = ceil_div(m.n, kPanelRows);
  w.panels = to.device.take_bytes(size_t(panels) * w.panel_bytes);
  auto* at = static_cast<std::byte*>(to.staged.take_bytes(size_t(panels) * w.panel_bytes));
  if (!at) return w;
  for (int64_t p = 0; p < panels; p++) {
    std::vector<const std::byte*> rows;
    for (int64_t i = p * kPanelRows; i < std::min(m.n, (p + 1) * kPanelRows); i++)
      rows.push_back(reinterpret_cast<const std::byte*>(m.values.data() + i * m.k));
    ops.pack_panel(DType::f32, m.k, rows, at + size_t(p) * w.panel_bytes);
  }
  return w;
}

std::vector<LayerWeights> pack(const TinyModel& model, Carving& to, const Ops& ops) {
  std::vector<LayerWeights> stages;
  for (const TinyStage& stage : model.stages) {
    LayerWeights& weights = stages.emplace_back();
    for (const auto& [role, matrix] : stage.matrices)
      weights.matrices[size_t(role)] = pack(matrix, to, ops);
    for (const auto& [role, values] : stage.vectors) {
      const Shape shape{int64_t(values.size())};
      weights.vectors[size_t(role)] = to.device.take(DType::f32, shape);
      const Tensor t = to.staged.take(DType::f32, shape);
      if (t.data) std::copy(values.begin(), values.end(), t.as<float>());
    }
  }
  return stages;
}

}  // namespace

const std::vector<std::string>& tiny_kinds() {
  static const std::vector<std::string> kinds{"opt", "opt-post", "llama", "neox", "neox-serial"};
  return kinds;
}

TinyModel tiny_model(const std::string& kind, uint64_t seed, int32_t head_dim) {
  TinyModel model{spec_of(kind), {}};
  if (head_dim > 0) model.spec.block.head_dim = head_dim;
  Maker(model, seed).whole(/*biased=*/kind != "llama");
  return model;
}

ModelWeights on_device(const TinyModel& model, Device& device) {
  Carving measure;
  pack(model, measure, device.ops());
  const size_t bytes = measure.device.used();
  Buffer memory = device.allocate(Memory::device, bytes, "tiny weights");
  const Buffer staged = device.allocate(Memory::pinned, bytes, "tiny weights");
  Carving carve{Arena(memory), Arena(staged)};
  std::vector<LayerWeights> stages = pack(model, carve, device.ops());
  const auto load = device.make_stream("load", /*inline_work=*/true);
  load->copy(memory.data(), staged.data(), bytes);
  load->synchronize();
  return {std::move(memory), std::move(stages)};
}

}  // namespace hydrant::test
