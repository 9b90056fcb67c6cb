// Small random models of every shape of block, as plain numbers and as a device's weights.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/device/device.hpp"
#include "runtime/model/load_weights.hpp"
#include "runtime/model/spec.hpp"

namespace hydrant::test {

struct TinyMatrix {
  int64_t n = 0, k = 0;
  std::vector<float> values;  // [n, k]
};

struct TinyStage {
  std::map<Matrix, TinyMatrix> matrices;
  std::map<Vector, std::vector<float>> vectors;
};

struct TinyModel {
  ModelSpec spec;
  std::vector<TinyStage> stages;
};

// "opt": pre-norm, learned places, tied. "opt-post": post-norm, projected embeddings. "llama": GQA,
// gated, full rotation. "neox": parallel, partial rotation. "neox-serial": the same, one half after
// the other.
const std::vector<std::string>& tiny_kinds();
TinyModel tiny_model(const std::string& kind, uint64_t seed, int32_t head_dim = 0);  // 0: small

// f32, exact products.
ModelWeights on_device(const TinyModel& model, Device& device);

}  // namespace hydrant::test
