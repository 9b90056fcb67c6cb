// What a user calls a model: a Hugging Face folder or a GGUF file.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "runtime/model/checkpoint.hpp"
#include "runtime/model/gguf.hpp"
#include "runtime/model/spec.hpp"

namespace hydrant {

struct ModelFamily;
enum class FileKind : uint8_t { hugging_face, gguf };

struct ModelFiles {
  FileKind kind = FileKind::hugging_face;
  std::string path;          // as given
  std::string description;   // PATH/config.json or the GGUF file: the file messages speak of
  std::string architecture;  // its "model_type" or "general.architecture"
  std::shared_ptr<const nlohmann::json> config;  // config.json, or the GGUF file's metadata
  Checkpoint checkpoint;
  GgufTokenizer tokenizer;  // GGUF only
  // What generation_config.json says, where it says it.
  std::optional<std::vector<int32_t>> eos;
  std::optional<int32_t> bos;
};

// Opens and checks the files; reads no weight. Throws bad_file. Which family it is, is the
// description's word, never the path's: look `architecture` up with find_family (models/).
ModelFiles open_model(const std::string& path);

// The family's reading of the description, with generation_config.json's ids, validated.
ModelSpec describe(const ModelFamily& family, const ModelFiles& files);

}  // namespace hydrant
