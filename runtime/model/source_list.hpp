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

  // The frame that families have in common, names without ".weight". A tied head may stand in the
  // file under either name; the head's is looked for without prefix.
  void embedding(const ModelSpec& spec, std::string_view tokens, std::string_view head);
  template <class AddBlock>
  void layers(const ModelSpec& spec, std::string_view folder, const AddBlock& add_block) {
    for (int32_t i = 0; i < spec.layers; i++) {
      enter(1 + i, std::string(folder) + std::to_string(i) + ".");
      add_block();
    }
  }
  void head(const ModelSpec& spec, std::string_view final_norm, std::string_view head);

  WeightSources take() { return std::move(sources_); }

 private:
  std::vector<std::string> spellings(std::string_view name) const;

  std::vector<std::string> prefixes_;
  std::string folder_;
  int stage_ = 0;
  WeightSources sources_;
};

}  // namespace hydrant
