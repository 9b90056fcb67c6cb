// What a model family says about its files: one record per file in models/.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "runtime/model/spec.hpp"
#include "runtime/model/weights.hpp"

namespace hydrant {

// How one matrix's or vector's rows are found in a checkpoint.
struct TensorSource {
  int stage = 0;
  std::vector<std::string>
      names;  // alternatives, the first that exists is taken (tied heads under either name)
  bool required = true;
  // Row i of the matrix (element i of the vector) is row `rows[i]` of the tensor; empty: as it
  // stands. NeoX interleaves q, k and v per head; GGUF permutes the rows of q and k.
  std::vector<int32_t> rows;
  // For a vector that is a concatenation (qkv_bias): where in it this part begins.
  int32_t begin = 0;
};
struct MatrixSource : TensorSource {
  Matrix role{};
  int64_t n = 0, k = 0;     // of the matrix wanted
  int64_t tensor_rows = 0;  // of the tensor in the file (NeoX: 3 n)
};
struct VectorSource : TensorSource {
  Vector role{};
  int64_t size = 0;         // of this part
  int64_t vector_size = 0;  // of the whole vector
  int64_t tensor_size = 0;
};
struct WeightSources {
  std::vector<MatrixSource> matrices;
  std::vector<VectorSource> vectors;
};

enum class FileKind : uint8_t { hugging_face, gguf };

struct ModelFamily {
  std::string_view name;       // config.json's "model_type"
  std::string_view gguf_name;  // general.architecture; empty: not read from GGUF
  // `config` is config.json, or a GGUF file's metadata as one JSON object of its keys. `file` is
  // for messages. Throws bad_file naming the key, what it holds and what is possible.
  ModelSpec (*describe)(const nlohmann::json& config, FileKind kind, const std::string& file);
  WeightSources (*sources)(const ModelSpec& spec, FileKind kind);
};

}  // namespace hydrant
