#include "runtime/model/load_weights.hpp"

#include "runtime/base/aligned.hpp"

namespace hydrant {
namespace {

std::vector<LayerWeights> view(const ModelSpec& spec, const WeightPlan& plan,
                               const std::byte* base) {
  std::vector<LayerWeights> stages(size_t(spec.stages()));
  for (const MatrixPlan& m : plan.matrices) {
    Weight& w = stages[size_t(m.source.stage)].matrices[size_t(m.source.role)];
    w = m.weight;
    w.panels = base + m.offset;
  }
  for (const VectorPlan& v : plan.vectors)
    stages[size_t(v.source.stage)].vectors[size_t(v.source.role)] =
        ConstTensor(base + v.offset, DType::f32, {v.source.vector_size});
  if (spec.tied_head) stages.back().matrices[size_t(Matrix::head)] = stages.front()[Matrix::tokens];
  return stages;
}

}  // namespace

ModelWeights load_weights(const Checkpoint& checkpoint, const ModelSpec& spec,
                          const WeightPlan& plan, Device& device, const LoadProgress& progress) {
  Buffer memory = device.allocate(Memory::device, plan.bytes, "the model's weights");
  auto* base = static_cast<std::byte*>(memory.data());
  Upload upload(device);
  for (const VectorPlan& v : plan.vectors) load_vector(checkpoint, v, upload, base + v.offset);
  std::vector<PanelLoad> loads;
  for (const MatrixPlan& m : plan.matrices)
    loads.push_back({{&m, 0, ceil_div(m.weight.n, kPanelRows)}, base + m.offset, Memory::device});
  load_panels(checkpoint, device, loads, progress);
  return ModelWeights(std::move(memory), view(spec, plan, base));
}

}  // namespace hydrant
