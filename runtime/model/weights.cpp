#include "runtime/model/weights.hpp"

namespace hydrant {
namespace {

constexpr std::array<std::string_view, size_t(Matrix::count)> kMatrices{
    "tokens", "places", "project_in", "q",    "k",           "v",
    "out",    "gate",   "up",         "down", "project_out", "head"};
constexpr std::array<std::string_view, size_t(Vector::count)> kVectors{
    "norm1_gain", "norm1_bias", "qkv_bias",  "out_bias",   "norm2_gain",
    "norm2_bias", "up_bias",    "down_bias", "final_gain", "final_bias"};

}  // namespace

std::string_view name(Matrix role) { return kMatrices.at(size_t(role)); }
std::string_view name(Vector role) { return kVectors.at(size_t(role)); }

WeightParts LayerWeights::parts(std::initializer_list<Matrix> roles) const {
  WeightParts parts{};
  size_t count = 0;
  for (const Matrix role : roles) {
    parts.at(count++) = (*this)[role];
    if (role == cut) parts.at(count++) = rest;
  }
  return parts;
}

}  // namespace hydrant
