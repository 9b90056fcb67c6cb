// The weights of a model by role, and views of one stage's.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "runtime/device/tensor.hpp"
#include "runtime/device/weight.hpp"

namespace hydrant {

// Matrices multiply (or are looked up in); they are kept in panels.
enum class Matrix : uint8_t {
  tokens,
  places,
  project_in,
  q,
  k,
  v,
  out,
  gate,
  up,
  down,
  project_out,
  head,
  count
};
// Vectors are f32 on the device. q/k/v biases lie one behind another in qkv_bias; with a gated MLP
// up_bias is gate's, then up's.
enum class Vector : uint8_t {
  norm1_gain,
  norm1_bias,
  qkv_bias,
  out_bias,
  norm2_gain,
  norm2_bias,
  up_bias,
  down_bias,
  final_gain,
  final_bias,
  count
};
std::string_view name(Matrix role);
std::string_view name(Vector role);

// One stage's weights; missing ones are null. Stage 0: tokens, places, project_in. Stages 1..L: a
// block. Stage L+1: final norm, project_out, head (for a tied head: the same panels as tokens).
//
// One matrix, `cut`, may lie in two runs of panels: its entry is the first rows, `rest` the others.
// A product takes both side by side, so nothing has to be copied to make them one.
struct LayerWeights {
  std::array<Weight, size_t(Matrix::count)> matrices{};
  std::array<ConstTensor, size_t(Vector::count)> vectors{};
  Matrix cut = Matrix::count;
  Weight rest;

  // The matrices side by side, as a product takes them: at most three.
  WeightParts parts(std::initializer_list<Matrix> roles) const;

  const Weight& operator[](Matrix role) const { return matrices[size_t(role)]; }
  const ConstTensor& operator[](Vector role) const { return vectors[size_t(role)]; }
};

}  // namespace hydrant
