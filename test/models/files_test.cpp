// Whole checkpoints, from files to the rows that a device gets.
#include <catch2/catch.hpp>
#include <cstring>
#include <numeric>

#include "models/registry.hpp"
#include "runtime/base/json.hpp"
#include "runtime/model/load_weights.hpp"
#include "test/support/checkpoint_writer.hpp"
#include "test/support/refusal.hpp"
#include "test/support/row_device.hpp"
#include "test/support/temporary_folder.hpp"

namespace hydrant::test {
namespace {

using Catch::Matchers::Contains;

constexpr int64_t kVocab = 20, kHidden = 32, kHeads = 4, kDim = 8, kFfn = 48;

// Each value says where it comes from: its tensor, row and column.
class Values {
 public:
  RawTensor operator()(std::string name, std::vector<int64_t> shape) {
    const int64_t columns = shape.size() == 1 ? 1 : shape[1];
    std::vector<float> values;
    for (int64_t r = 0; r < shape[0]; r++)
      for (int64_t c = 0; c < columns; c++) values.push_back(value(next_, r, c));
    next_++;
    return f32_tensor(std::move(name), std::move(shape), values);
  }
  static float value(int tensor, int64_t row, int64_t column) {
    return float(tensor * 16384 + row * 64 + column);  // exact in f32
  }

 private:
  int next_ = 0;
};

struct Model {
  ModelSpec spec;
  ModelWeights weights;
};
Model loaded(const std::string& path) {
  const ModelFiles files = open_model(path);
  const ModelFamily& family = find_family(files.architecture, files.kind, files.description);
  ModelSpec spec = describe(family, files);
  RowDevice device;
  const WeightPlan plan =
      plan_weights(files.checkpoint, spec, family.sources(spec, files.kind), device.ops(), false);
  ModelWeights weights = load_weights(files.checkpoint, spec, plan, device);
  return {std::move(spec), std::move(weights)};
}
std::string refused(const std::string& path) {
  return refusal(Fault::bad_file, [&] { loaded(path); });
}

std::vector<float> row(const Weight& w, int64_t i) {
  std::vector<float> values(size_t(w.k));
  std::memcpy(values.data(), row_of(w, i), values.size() * sizeof(float));
  return values;
}
std::vector<float> all(const ConstTensor& t) {
  return {t.as<float>(), t.as<float>() + t.shape.count()};
}

const Json kLlama{{"model_type", "llama"},         {"vocab_size", kVocab},
                  {"hidden_size", kHidden},        {"num_hidden_layers", 1},
                  {"num_attention_heads", kHeads}, {"num_key_value_heads", 2},
                  {"intermediate_size", kFfn},     {"max_position_embeddings", 64},
                  {"attention_bias", true},        {"mlp_bias", true}};

std::vector<RawTensor> llama_tensors(bool head) {
  Values make;
  std::vector<RawTensor> list{make("model.embed_tokens.weight", {kVocab, kHidden}),
                              make("model.norm.weight", {kHidden})};
  if (head) list.push_back(make("lm_head.weight", {kVocab, kHidden}));
  const std::string block = "model.layers.0.";
  const auto linear = [&](const std::string& name, int64_t n, int64_t k) {
    list.push_back(make(block + name + ".weight", {n, k}));
    list.push_back(make(block + name + ".bias", {n}));
  };
  list.push_back(make(block + "input_layernorm.weight", {kHidden}));
  list.push_back(make(block + "post_attention_layernorm.weight", {kHidden}));
  linear("self_attn.q_proj", kHeads * kDim, kHidden);
  linear("self_attn.k_proj", 2 * kDim, kHidden);
  linear("self_attn.v_proj", 2 * kDim, kHidden);
  linear("self_attn.o_proj", kHidden, kHeads * kDim);
  linear("mlp.gate_proj", kFfn, kHidden);
  linear("mlp.up_proj", kFfn, kHidden);
  linear("mlp.down_proj", kHidden, kFfn);
  return list;
}

// As a converter writes q and k: the two halves of a head's rows take turns.
void pair_rows(RawTensor& t) {
  const int64_t rows = t.shape[0], bytes = int64_t(t.bytes.size()) / rows;
  std::string paired;
  for (int64_t r = 0; r < rows; r++) {
    const int64_t head = r / kDim, within = r % kDim;
    const int64_t from = head * kDim + within % 2 * (kDim / 2) + within / 2;
    paired += t.bytes.substr(size_t(from * bytes), size_t(bytes));
  }
  t.bytes = paired;
}

// What every architecture says of its sizes.
GgufWriter sized_gguf(const std::string& architecture) {
  GgufWriter w;
  w.text("general.architecture", architecture);
  w.integer(architecture + ".embedding_length", kHidden);
  w.integer(architecture + ".block_count", 1);
  w.integer(architecture + ".context_length", 64);
  w.integer(architecture + ".feed_forward_length", kFfn);
  w.integer(architecture + ".attention.head_count", kHeads);
  return w;
}

std::string llama_gguf(std::vector<RawTensor> tensors) {
  const std::vector<std::pair<std::string, std::string>> names{
      {"model.embed_tokens", "token_embd"},
      {"model.norm", "output_norm"},
      {"lm_head", "output"},
      {"model.layers.0.", "blk.0."},
      {"input_layernorm", "attn_norm"},
      {"post_attention_layernorm", "ffn_norm"},
      {"self_attn.q_proj", "attn_q"},
      {"self_attn.k_proj", "attn_k"},
      {"self_attn.v_proj", "attn_v"},
      {"self_attn.o_proj", "attn_output"},
      {"mlp.gate_proj", "ffn_gate"},
      {"mlp.up_proj", "ffn_up"},
      {"mlp.down_proj", "ffn_down"}};
  GgufWriter w = sized_gguf("llama");
  w.integer("llama.attention.head_count_kv", 2);
  w.real("llama.attention.layer_norm_rms_epsilon", 1e-6f);
  w.integer("tokenizer.ggml.bos_token_id", 1);
  w.integer("tokenizer.ggml.eos_token_id", 2);
  w.text("llama.rope.scaling.type", "linear");
  w.real("llama.rope.scaling.factor", 2);
  for (RawTensor& t : tensors) {
    for (const auto& [from, to] : names)
      if (const size_t at = t.name.find(from); at != std::string::npos)
        t.name.replace(at, from.size(), to);
    if (t.name.find("attn_q.") != std::string::npos || t.name.find("attn_k.") != std::string::npos)
      pair_rows(t);
    t.type = "f32";
    w.tensor(t);
  }
  RawTensor divisors = f32_tensor("rope_freqs.weight", {kDim / 2}, {1, 2, 4, 8});
  divisors.type = "f32";
  w.tensor(divisors);
  return w.bytes();
}

void write_folder(const TemporaryFolder& folder, const Json& config,
                  const std::vector<RawTensor>& tensors) {
  folder.write("config.json", config.dump());
  folder.write("model.safetensors", safetensors_bytes(tensors));
}

TEST_CASE("LLaMA: a GGUF file gives the rows of the folder it was made from") {
  const bool head = GENERATE(false, true);
  const TemporaryFolder folder;
  write_folder(
      folder,
      [&] {
        Json config = kLlama;
        config["tie_word_embeddings"] = !head;
        config["rope_scaling"] = {{"type", "linear"}, {"factor", 2}};
        return config;
      }(),
      llama_tensors(head));
  const Model a = loaded(folder.path()),
              b = loaded(folder.write("m.gguf", llama_gguf(llama_tensors(head))));

  CHECK(a.spec.tied_head == !head);
  CHECK(b.spec.tied_head == !head);
  CHECK(b.spec.vocab == kVocab);
  CHECK(b.spec.eos == a.spec.eos);
  CHECK(b.spec.bos == a.spec.bos);
  for (size_t i = 0; i < 4; i++)
    CHECK(a.spec.block.rotary.inverse_frequency[i] ==
          Approx(b.spec.block.rotary.inverse_frequency[i] * std::vector{1, 2, 4, 8}[i]));

  // The folder's rows are the file's own, in the order of the tensors as they were made.
  const LayerWeights& block = a.weights.stage(1);
  const int q = head ? 5 : 4;
  CHECK(row(block[Matrix::q], 9)[3] == Values::value(q, 9, 3));
  CHECK(row(block[Matrix::k], 15)[0] == Values::value(q + 2, 15, 0));
  std::vector<float> biases = all(block[Vector::qkv_bias]);
  CHECK(biases.at(31) == Values::value(q + 1, 31, 0));
  CHECK(biases.at(32) == Values::value(q + 3, 0, 0));
  CHECK(biases.at(48) == Values::value(q + 5, 0, 0));
  biases = all(block[Vector::up_bias]);
  REQUIRE(biases.size() == 2 * kFfn);
  CHECK(biases.at(0) == Values::value(q + 9, 0, 0));
  CHECK(biases.at(kFfn) == Values::value(q + 11, 0, 0));

  for (int stage = 0; stage < 3; stage++) {
    const LayerWeights &x = a.weights.stage(stage), &y = b.weights.stage(stage);
    for (size_t m = 0; m < x.matrices.size(); m++) {
      INFO(name(Matrix(m)) << " of stage " << stage);
      REQUIRE(bool(x.matrices[m]) == bool(y.matrices[m]));
      for (int64_t i = 0; i < x.matrices[m].n; i++)
        REQUIRE(row(x.matrices[m], i) == row(y.matrices[m], i));
    }
    for (size_t v = 0; v < x.vectors.size(); v++) {
      INFO(name(Vector(v)) << " of stage " << stage);
      REQUIRE(bool(x.vectors[v]) == bool(y.vectors[v]));
      if (x.vectors[v]) CHECK(all(x.vectors[v]) == all(y.vectors[v]));
    }
  }
}

TEST_CASE("GPT-NeoX: q, k and v come out of the fused tensor, in both kinds of file") {
  const TemporaryFolder folder;
  const Json config{{"model_type", "gpt_neox"},      {"vocab_size", kVocab},
                    {"hidden_size", kHidden},        {"num_hidden_layers", 1},
                    {"num_attention_heads", kHeads}, {"intermediate_size", kFfn},
                    {"max_position_embeddings", 64}, {"rotary_pct", 0.5}};
  const bool gguf = GENERATE(false, true);
  Values make;
  const std::string block = gguf ? "blk.0." : "gpt_neox.layers.0.";
  const auto named = [&](const char* hf, const char* gg) { return std::string(gguf ? gg : hf); };
  std::vector<RawTensor> list{
      make(block + named("attention.query_key_value", "attn_qkv") + ".weight",
           {3 * kHidden, kHidden}),
      make(block + named("attention.query_key_value", "attn_qkv") + ".bias", {3 * kHidden}),
      make(named("gpt_neox.embed_in", "token_embd") + ".weight", {kVocab, kHidden}),
      make(named("embed_out", "output") + ".weight", {kVocab, kHidden})};
  const auto add = [&](const std::string& name, std::vector<int64_t> shape) {
    list.push_back(make(name + ".weight", shape));
    list.push_back(make(name + ".bias", {shape[0]}));
  };
  add(block + named("attention.dense", "attn_output"), {kHidden, kHidden});
  add(block + named("input_layernorm", "attn_norm"), {kHidden});
  add(block + named("post_attention_layernorm", "ffn_norm"), {kHidden});
  add(block + named("mlp.dense_h_to_4h", "ffn_up"), {kFfn, kHidden});
  add(block + named("mlp.dense_4h_to_h", "ffn_down"), {kHidden, kFfn});
  add(named("gpt_neox.final_layer_norm", "output_norm"), {kHidden});
  std::string path = folder.path();
  if (gguf) {
    GgufWriter w = sized_gguf("gptneox");
    w.integer("gptneox.rope.dimension_count", kDim / 2);
    w.real("gptneox.attention.layer_norm_epsilon", 1e-5f);
    w.flag("gptneox.use_parallel_residual", true);
    for (RawTensor& t : list) {
      t.type = "f32";
      w.tensor(t);
    }
    path = folder.write("m.gguf", w.bytes());
  } else {
    write_folder(folder, config, list);
  }
  const Model model = loaded(path);
  CHECK(model.spec.block.order == BlockOrder::parallel);
  CHECK(model.spec.block.rotary.dims == kDim / 2);
  const LayerWeights& weights = model.weights.stage(1);
  const std::vector<float> bias = all(weights[Vector::qkv_bias]);
  for (int part = 0; part < 3; part++)
    for (int64_t head = 0; head < kHeads; head++)
      for (int64_t i = 0; i < kDim; i++) {
        const int64_t at = head * kDim + i;
        const int64_t from = gguf ? part * kHidden + at : (head * 3 + part) * kDim + i;
        const Weight& w = weights[part == 0 ? Matrix::q : part == 1 ? Matrix::k : Matrix::v];
        REQUIRE(row(w, at)[7] == Values::value(0, from, 7));
        REQUIRE(bias.at(size_t(part * kHidden + at)) == Values::value(1, from, 0));
      }
}

TEST_CASE("OPT: the tied table is found under either name, with either prefix") {
  const TemporaryFolder folder;
  Json config{{"model_type", "opt"},
              {"vocab_size", kVocab},
              {"hidden_size", kHidden},
              {"num_hidden_layers", 1},
              {"num_attention_heads", kHeads},
              {"ffn_dim", kFfn},
              {"max_position_embeddings", 6},
              {"enable_bias", false},
              {"layer_norm_elementwise_affine", false}};
  const auto tensors = [](std::vector<std::string> tables, const std::string& prefix) {
    Values make;
    std::vector<RawTensor> list;
    for (const std::string& t : tables) list.push_back(make(t, {kVocab, kHidden}));
    list.push_back(make(prefix + "embed_positions.weight", {8, kHidden}));
    for (const char* name : {"q_proj", "k_proj", "v_proj", "out_proj"})
      list.push_back(make(prefix + "layers.0.self_attn." + name + ".weight", {kHidden, kHidden}));
    list.push_back(make(prefix + "layers.0.fc1.weight", {kFfn, kHidden}));
    list.push_back(make(prefix + "layers.0.fc2.weight", {kHidden, kFfn}));
    return list;
  };
  const std::string long_prefix = "model.decoder.", short_prefix = "decoder.";
  const auto first = [&] {
    const Model m = loaded(folder.path());
    return row(m.weights.stage(2)[Matrix::head], 3)[0];
  };
  write_folder(folder, config, tensors({"model.decoder.embed_tokens.weight"}, long_prefix));
  CHECK(first() == Values::value(0, 3, 0));
  write_folder(folder, config, tensors({"decoder.embed_tokens.weight"}, short_prefix));
  CHECK(first() == Values::value(0, 3, 0));
  write_folder(folder, config, tensors({"lm_head.weight"}, long_prefix));
  CHECK(first() == Values::value(0, 3, 0));
  write_folder(folder, config,
               tensors({"lm_head.weight", "model.decoder.embed_tokens.weight"}, long_prefix));
  CHECK(first() == Values::value(1, 3, 0));  // both: the embedding is the one that is meant

  config["tie_word_embeddings"] = false;
  write_folder(folder, config,
               tensors({"lm_head.weight", "model.decoder.embed_tokens.weight"}, long_prefix));
  CHECK(first() == Values::value(0, 3, 0));
  write_folder(folder, config, tensors({"model.decoder.embed_tokens.weight"}, long_prefix));
  CHECK_THAT(refused(folder.path()), Contains("tensor lm_head.weight is missing"));
}

TEST_CASE("a missing tensor or untied head is refused by its name") {
  const TemporaryFolder folder;
  std::vector<RawTensor> tensors = llama_tensors(false);
  write_folder(folder, kLlama, tensors);  // untied is LLaMA's default
  CHECK_THAT(refused(folder.path()), Contains("model.safetensors: tensor lm_head.weight is"));
  tensors = llama_tensors(true);
  tensors.pop_back();
  write_folder(folder, kLlama, tensors);
  CHECK_THAT(refused(folder.path()),
             Contains("tensor model.layers.0.mlp.down_proj.bias is missing"));
}

TEST_CASE("folders and files that are no model are refused by name") {
  const TemporaryFolder folder;
  const auto refused_at = [](const std::string& path) {
    return refusal(Fault::bad_file, [&] { open_model(path); });
  };
  CHECK_THAT(refused_at(folder.file("gone")), Contains("gone: "));
  CHECK_THAT(refused_at(folder.path()), Contains("config.json"));
  CHECK_THAT(refused_at(folder.write("m.gguf", "garbage")), Contains("not a GGUF file"));
  CHECK_THAT(refused_at("/dev/null"), Contains("/dev/null"));
  folder.write("config.json", "[]");
  CHECK_THAT(refused_at(folder.path()), Contains("config.json: the text is not an object"));
  folder.write("config.json", "{}");
  CHECK_THAT(refused_at(folder.path()), Contains("key model_type is missing"));
  folder.write("config.json", R"({"model_type": "opt", "quantization_config": {"bits": 4}})");
  CHECK_THAT(refused_at(folder.path()), Contains("key quantization_config"));
  folder.write("config.json", R"({"model_type": "opt"})");
  CHECK_THAT(refused_at(folder.path()), Contains("pytorch_model.bin"));
}

TEST_CASE("generation_config.json gives ids, and nothing else") {
  const TemporaryFolder folder;
  Json config = kLlama;
  config["eos_token_id"] = 3;
  config["bos_token_id"] = 4;
  write_folder(folder, config, llama_tensors(true));
  const auto ends = [&](const char* generation) {
    folder.write("generation_config.json", generation);
    return loaded(folder.path()).spec;
  };
  CHECK(ends("{}").eos == std::vector<int32_t>{3});
  CHECK(ends(R"({"eos_token_id": [5, 6], "temperature": 0.1})").eos == std::vector<int32_t>{5, 6});
  CHECK(ends(R"({"eos_token_id": 7})").bos == 4);
  CHECK(ends(R"({"bos_token_id": 8, "eos_token_id": null})").bos == 8);
  folder.write("generation_config.json", R"({"eos_token_id": "x"})");
  CHECK_THAT(refused(folder.path()), Contains("generation_config.json: key eos_token_id"));
  // What the vocabulary does not have is left out; with nothing left the model's own ids hold.
  CHECK(ends(R"({"eos_token_id": [5, 99]})").eos == std::vector<int32_t>{5});
  CHECK(ends(R"({"eos_token_id": 99, "bos_token_id": 98})").eos == std::vector<int32_t>{3});
  CHECK(ends(R"({"bos_token_id": 98})").bos == 4);
}

}  // namespace
}  // namespace hydrant::test
