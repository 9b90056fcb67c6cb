// Writes a family's WeightSources with little to say per tensor.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/model/family.hpp"

namespace hydrant {

// Names are looked for below each of `prefixes`, in this order.
class SourceList {
 public:
  SourceList(std::vector<std::string> prefixes, std::vector<std::string> ignored);

  // Where the sources added from now on belong, and what stands between prefix and name.
  void enter(int stage, std::string folder = "");

  // [n, k] and [size], rows as they stand; the references allow to say otherwise.
  MatrixSource& matrix(Matrix role, std::string_view name, int64_t n, int64_t k);
  VectorSource& vector(Vector role, std::string_view name, int64_t size);

  // A gain, and with layer norm a bias; ones and nothing when the block's norms are not affine.
  void norm(const BlockSpec& block, Vector gain, Vector bias, std::string_view name, int64_t size);

  // q, k, v and their biases. Names are without ".weight"; `fused` is the number of rows where the
  // three are one tensor, else 0.
  struct Projection {
    std::string_view name;
    RowOrder order;
  };
  void qkv(const ModelSpec& spec, const Projection (&parts)[3], int64_t fused = 0);

  WeightSources take() { return std::move(sources_); }

 private:
  std::vector<std::string> spellings(std::string_view name) const;

  std::vector<std::string> prefixes_;
  std::string folder_;
  int stage_ = 0;
  WeightSources sources_;
};

}  // namespace hydrant
