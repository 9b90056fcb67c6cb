// What a model family says about its files: one record per file in models/.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/model/model_files.hpp"
#include "runtime/model/spec.hpp"
#include "runtime/model/weights.hpp"

namespace hydrant {

// Which row of a tensor is row i of a matrix (which element is element i of a vector): i is read as
// three digits, of which the last counts to `inner` and the one before to `middle`, and each digit
// takes its own step. As it stands: row i is row i. NeoX keeps a head's q, k and v together; GGUF
// pairs the rows of q and k.
struct RowOrder {
  int64_t offset = 0;
  int64_t outer_step = 1, middle_step = 1, inner_step = 1;
  int64_t middle = 1, inner = 1;

  int64_t operator()(int64_t i) const {
    return offset + i / (middle * inner) * outer_step + i / inner % middle * middle_step +
           i % inner * inner_step;
  }
};

// How one matrix's or vector's rows are found in a checkpoint.
struct TensorSource {
  int stage = 0;
  // Alternatives, the first that exists is taken (tied heads under either name). A vector without
  // any is all ones: the gain of a norm that has none.
  std::vector<std::string> names;
  RowOrder order;
};
struct MatrixSource : TensorSource {
  Matrix role{};
  int64_t n = 0, k = 0;     // of the matrix wanted
  int64_t tensor_rows = 0;  // of the tensor in the file (NeoX: 3 n)
};
// A vector may be put together from several sources (qkv_bias): each fills [begin, begin + size).
struct VectorSource : TensorSource {
  Vector role{};
  int64_t begin = 0, size = 0;
  int64_t vector_size = 0;  // of the whole vector
  int64_t tensor_size = 0;
};
struct WeightSources {
  std::vector<MatrixSource> matrices;
  std::vector<VectorSource> vectors;
  std::vector<std::string> ignored;  // endings of the names of tensors that nobody needs
};

struct ModelFamily {
  std::string_view name;       // config.json's "model_type"
  std::string_view gguf_name;  // general.architecture; empty: not read from GGUF
  // Reads the description (and, for what GGUF keeps in tensors, the checkpoint). Throws bad_file
  // naming the key, what it holds and what is possible. Called through describe(), which validates.
  ModelSpec (*describe)(const ModelFiles& files);
  WeightSources (*sources)(const ModelSpec& spec, FileKind kind);
};

}  // namespace hydrant
