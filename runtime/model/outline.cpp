#include "runtime/model/outline.hpp"

#include <algorithm>
#include <string>

#include "runtime/base/error.hpp"

namespace hydrant {

ModelSpec outline_of_config(const ConfigReader& config) {
  ModelSpec spec;
  spec.vocab = config.integer("vocab_size", 1, kMostVocab);
  spec.hidden = spec.embedding = config.integer("hidden_size", 1, kMostWidth);
  spec.layers = config.integer("num_hidden_layers", 1, kMostLayers);
  spec.eos = config.ids_or("eos_token_id", {2});
  return spec;
}

ModelSpec outline_of_gguf(const ModelFiles& files, const ConfigReader& config) {
  const StoredTensor* tokens = files.checkpoint.find("token_embd.weight");
  if (!tokens) fail(Fault::bad_file, "{}: tensor token_embd.weight is missing", files.description);
  ModelSpec spec;
  spec.vocab = int32_t(std::min<int64_t>(tokens->rows, kMostVocab + int64_t{1}));
  spec.hidden = spec.embedding = config.integer("embedding_length", 1, kMostWidth);
  spec.layers = config.integer("block_count", 1, kMostLayers);
  spec.max_positions = config.integer("context_length", 1, kMostPositions);
  spec.tied_head = !files.checkpoint.find("output.weight");
  spec.eos = files.tokenizer.ends();
  spec.bos = files.tokenizer.bos;
  return spec;
}

int32_t heads_across(const ConfigReader& config, std::string_view key, int32_t width,
                     std::string_view width_key) {
  const int32_t heads = config.integer(key, 1, kMostHeads);
  if (width % heads != 0) config.refuse(key, "not a divisor of " + std::string(width_key));
  return heads;
}

}  // namespace hydrant
