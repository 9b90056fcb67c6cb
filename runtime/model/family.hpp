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

// How one matrix's or vector's rows are found in a checkpoint.
struct TensorSource {
  int stage = 0;
  // Alternatives, the first that exists is taken (tied heads under either name). A vector without
  // any is all ones: the gain of a norm that has none.
  std::vector<std::string> names;
  // Row i of the matrix (element i of the vector) is row `rows[i]` of the tensor; empty: as it
  // stands. NeoX interleaves q, k and v per head; GGUF permutes the rows of q and k.
  std::vector<int32_t> rows;
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
