// Which tensor becomes which weight, and how much memory that takes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/device/ops.hpp"
#include "runtime/model/checkpoint.hpp"
#include "runtime/model/family.hpp"
#include "runtime/model/spec.hpp"
#include "runtime/model/weights.hpp"

namespace hydrant {

struct MatrixPlan {
  const StoredTensor* tensor = nullptr;
  MatrixSource source;
  Weight weight;      // panels still null
  size_t offset = 0;  // of the panels in the model's one allocation
};
struct VectorPlan {
  const StoredTensor* tensor = nullptr;  // null: all ones
  VectorSource source;
  size_t offset = 0;  // of the whole vector
};

// Made before any weight is loaded. Points into the checkpoint.
struct WeightPlan {
  std::vector<MatrixPlan> matrices;
  std::vector<VectorPlan> vectors;
  size_t bytes = 0;           // of the allocation
  uint64_t stored_bytes = 0;  // of the tensors in the file
  int64_t parameters = 0;
  std::string formats;      // of the matrices, the most bytes first: "q4_0 + q8_0"
  std::string activations;  // what their products round their inputs to: "int8", "bf16 + int8"
};

// Throws bad_file naming a tensor that is missing, that has another shape or type than the
// description asks for, or that is of a layer which the description does not have. `exact_f32`: no
// product rounds its input. Tensors that belong to nothing are warned of in one line, and so is a
// second name of a tensor that holds other values than the first.
WeightPlan plan_weights(const Checkpoint& checkpoint, const ModelSpec& spec,
                        const WeightSources& sources, const Ops& ops, bool exact_f32);

}  // namespace hydrant
