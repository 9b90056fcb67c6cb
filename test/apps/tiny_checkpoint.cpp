#include "test/apps/tiny_checkpoint.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <random>
#include <vector>

#include "runtime/base/half.hpp"
#include "runtime/base/json.hpp"
#include "test/support/checkpoint_writer.hpp"

namespace hydrant::test {
namespace {

constexpr int kHidden = 32, kHeads = 4, kKvHeads = 2, kHeadDim = 8, kFfn = 64, kVocab = 258;

// GPT-2's spelling of a byte: printable ones stand for themselves, the others are moved up.
std::string spelling(int byte) {
  static const std::vector<int> codes = [] {
    std::vector<int> all;
    int moved = 256;
    for (int b = 0; b < 256; b++) {
      const bool stays = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
      all.push_back(stays ? b : moved++);
    }
    return all;
  }();
  const int code = codes[size_t(byte)];
  if (code < 128) return std::string(1, char(code));
  return {char(0xc0 | code >> 6), char(0x80 | (code & 63))};
}

Json tokenizer() {
  Json vocabulary = Json::object();
  for (int byte = 0; byte < 256; byte++) vocabulary[spelling(byte)] = byte;
  Json added = Json::array();
  for (const auto& [text, id] : {std::pair{"<s>", 256}, {"</s>", 257}})
    added.push_back({{"id", id},
                     {"content", text},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  const Json bos{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}};
  const Json text{{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  const Json pair{{"Sequence", {{"id", "B"}, {"type_id", 1}}}};
  const Json byte_level{{"type", "ByteLevel"},
                        {"add_prefix_space", false},
                        {"trim_offsets", true},
                        {"use_regex", false}};
  return {{"version", "1.0"},
          {"added_tokens", added},
          {"normalizer", nullptr},
          {"pre_tokenizer", byte_level},
          {"post_processor",
           {{"type", "TemplateProcessing"},
            {"single", Json::array({bos, text})},
            {"pair", Json::array({bos, text, pair})},
            {"special_tokens",
             {{"<s>",
               {{"id", "<s>"}, {"ids", Json::array({256})}, {"tokens", Json::array({"<s>"})}}}}}}},
          {"decoder", byte_level},
          {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", Json::array()}}}};
}

Json description() {
  return {{"architectures", Json::array({"LlamaForCausalLM"})},
          {"model_type", "llama"},
          {"hidden_size", kHidden},
          {"intermediate_size", kFfn},
          {"num_hidden_layers", 2},
          {"num_attention_heads", kHeads},
          {"num_key_value_heads", kKvHeads},
          {"max_position_embeddings", kTinyPositions},
          {"rms_norm_eps", 1e-5},
          {"rope_theta", 10000.0},
          {"hidden_act", "silu"},
          {"vocab_size", kVocab},
          {"tie_word_embeddings", true},
          {"bos_token_id", 256},
          {"eos_token_id", 257},
          {"torch_dtype", "float32"}};
}

RawTensor tensor_of(const std::string& type, const std::string& name, std::vector<int64_t> shape,
                    const std::vector<float>& values) {
  if (type == "F32") return f32_tensor(name, std::move(shape), values);
  std::vector<uint16_t> halves;
  for (const float v : values) halves.push_back(type == "F16" ? f32_to_f16(v) : f32_to_bf16(v));
  return {name, type, std::move(shape), bytes_of(halves)};
}

std::vector<RawTensor> tensors(const std::string& type) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0, 0.3f);
  std::vector<RawTensor> all;
  const auto add = [&](const std::string& name, std::vector<int64_t> shape) {
    int64_t count = 1;
    for (const int64_t extent : shape) count *= extent;
    std::vector<float> values(static_cast<size_t>(count));
    for (float& v : values) v = shape.size() == 1 ? 1 + 0.1f * normal(random) : normal(random);
    all.push_back(tensor_of(type, name, std::move(shape), values));
  };
  add("model.embed_tokens.weight", {kVocab, kHidden});
  add("model.norm.weight", {kHidden});
  for (const char* layer : {"model.layers.0.", "model.layers.1."}) {
    const std::string l = layer;
    add(l + "input_layernorm.weight", {kHidden});
    add(l + "post_attention_layernorm.weight", {kHidden});
    add(l + "self_attn.q_proj.weight", {kHeads * kHeadDim, kHidden});
    add(l + "self_attn.k_proj.weight", {kKvHeads * kHeadDim, kHidden});
    add(l + "self_attn.v_proj.weight", {kKvHeads * kHeadDim, kHidden});
    add(l + "self_attn.o_proj.weight", {kHidden, kHeads * kHeadDim});
    add(l + "mlp.gate_proj.weight", {kFfn, kHidden});
    add(l + "mlp.up_proj.weight", {kFfn, kHidden});
    add(l + "mlp.down_proj.weight", {kHidden, kFfn});
  }
  return all;
}

}  // namespace

void write_tiny_checkpoint(const TemporaryFolder& folder, const std::string& type) {
  folder.write("config.json", description().dump());
  folder.write("tokenizer.json", tokenizer().dump());
  folder.write("model.safetensors", safetensors_bytes(tensors(type)));
}

uint64_t write_large_checkpoint(const TemporaryFolder& folder, int layers) {
  constexpr int kWide = 512, kWideFfn = 2048;
  Json config = description();
  config["hidden_size"] = kWide;
  config["intermediate_size"] = kWideFfn;
  config["num_hidden_layers"] = layers;
  config["num_attention_heads"] = config["num_key_value_heads"] = 8;
  uint64_t bytes = 0;
  Json header = Json::object();
  const auto add = [&](const std::string& name, std::vector<uint64_t> shape) {
    const uint64_t begin = bytes;
    bytes += 2 * shape.front() * (shape.size() > 1 ? shape[1] : 1);
    header[name] = {{"dtype", "BF16"}, {"shape", shape}, {"data_offsets", {begin, bytes}}};
  };
  add("model.embed_tokens.weight", {kVocab, kWide});
  add("model.norm.weight", {kWide});
  for (int i = 0; i < layers; i++) {
    const std::string l = fmt::format("model.layers.{}.", i);
    add(l + "input_layernorm.weight", {kWide});
    add(l + "post_attention_layernorm.weight", {kWide});
    for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
      add(l + "self_attn." + name + ".weight", {kWide, kWide});
    for (const char* name : {"gate_proj", "up_proj"})
      add(l + "mlp." + name + ".weight", {kWideFfn, kWide});
    add(l + "mlp.down_proj.weight", {kWide, kWideFfn});
  }
  folder.write("config.json", config.dump());
  folder.write("tokenizer.json", tokenizer().dump());
  const std::string head = safetensors_bytes(header.dump(), "");
  folder.write("model.safetensors", head);
  std::filesystem::resize_file(folder.file("model.safetensors"), head.size() + bytes);
  return bytes;
}

}  // namespace hydrant::test
