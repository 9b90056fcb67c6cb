#include "runtime/model/model_files.hpp"

#include <filesystem>
#include <system_error>
#include <utility>

#include "runtime/base/error.hpp"
#include "runtime/base/json.hpp"
#include "runtime/base/log.hpp"
#include "runtime/model/config_reader.hpp"
#include "runtime/model/family.hpp"
#include "runtime/model/safetensors.hpp"
#include "runtime/model/shape.hpp"

namespace hydrant {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLongestConfig = uint64_t{16} << 20;

ModelFiles open_folder(std::string path) {
  while (path.ends_with('/')) path.pop_back();  // "/" too: below, each name follows one
  ModelFiles files;
  files.kind = FileKind::hugging_face;
  files.path = path;
  files.description = path + "/config.json";
  auto config = std::make_shared<const Json>(
      parse_json(read_text(files.description, kLongestConfig), files.description));
  const ConfigReader reader(*config, files.description);
  files.architecture = reader.text("model_type");
  reader.refuse_if_set({"quantization_config"});
  files.config = std::move(config);

  const std::string generation = path + "/generation_config.json";
  std::error_code unreadable;
  if (fs::exists(generation, unreadable)) {
    const Json ids = parse_json(read_text(generation, kLongestConfig), generation);
    const ConfigReader given(ids, generation);
    if (given.has("eos_token_id")) files.eos = given.ids_or("eos_token_id", {});
    if (given.has("bos_token_id")) files.bos = given.integer("bos_token_id", 0, kMostVocab);
  }
  files.checkpoint = open_safetensors(path);
  return files;
}

ModelFiles open_gguf(const std::string& path) {
  std::vector<File> list;
  list.emplace_back(path);
  GgufHeader header = read_gguf_header(list.front());
  ModelFiles files;
  files.kind = FileKind::gguf;
  files.path = files.description = path;
  const ConfigReader reader(*header.metadata, path);
  files.architecture = reader.text("general.architecture");
  if (reader.integer_or("split.count", 1, 0, 1 << 16) > 1)
    reader.refuse("split.count", "a file in parts, which is not read; merge the parts first");
  files.config = std::move(header.metadata);
  files.checkpoint = Checkpoint(std::move(list), std::move(header.tensors));
  files.tokenizer = std::move(header.tokenizer);
  return files;
}

// generation_config.json speaks of generation, not of the model: what it gets wrong is left out.
void apply_generation_config(ModelSpec& spec, const ModelFiles& files) {
  const auto known = [&](std::string_view key, int32_t id) {
    if (id < spec.vocab) return true;
    log::warning("{}/generation_config.json: {} {} is not in the vocabulary of {} and is left out",
                 files.path, key, id, spec.vocab);
    return false;
  };
  if (files.eos) {
    std::vector<int32_t> eos;
    for (const int32_t id : *files.eos)
      if (known("eos_token_id", id)) eos.push_back(id);
    if (!eos.empty() || files.eos->empty()) spec.eos = std::move(eos);
  }
  if (files.bos && known("bos_token_id", *files.bos)) spec.bos = *files.bos;
}

}  // namespace

ModelFiles open_model(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status))
    fail(Fault::bad_file, "{}: {}", path, error ? error.message() : "no such file or folder");
  if (fs::is_directory(status)) return open_folder(path);
  if (is_shape(path))
    fail(Fault::bad_file,
         "{}: a description without weights, which is for figures of memory (inspect); a run needs "
         "the model's folder or a .gguf file",
         path);
  return open_gguf(path);
}

ModelSpec describe(const ModelFamily& family, const ModelFiles& files) {
  ModelSpec spec = family.describe(files);
  apply_generation_config(spec, files);
  validate(spec, files.description);
  return spec;
}

}  // namespace hydrant
