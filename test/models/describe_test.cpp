// What the families make of descriptions: published models, and keys that must not be passed over.
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <numbers>

#include "models/registry.hpp"
#include "runtime/base/json.hpp"
#include "test/support/refusal.hpp"

namespace hydrant::test {
namespace {

using Catch::Matchers::Contains;

ModelFiles folder_of(Json config) {
  ModelFiles files;
  files.description = "config.json";
  files.architecture = config.value("model_type", "");
  files.config = std::make_shared<const Json>(std::move(config));
  return files;
}
Json published(const std::string& name) {
  const std::string path = HYDRANT_TEST_DIR "/../configs/models/" + name + ".json";
  return parse_json(read_text(path), path);
}
const ModelFamily& family_of(const ModelFiles& files) {
  return find_family(files.architecture, files.kind, files.description);
}
ModelSpec described(const Json& config) {
  const ModelFiles files = folder_of(config);
  return describe(family_of(files), files);
}
std::string refused(const Json& config) {
  return refusal(Fault::bad_file, [&] { described(config); });
}
int64_t parameters(const ModelSpec& spec) {
  const WeightSources sources =
      family_of(folder_of({{"model_type", spec.family}})).sources(spec, FileKind::hugging_face);
  int64_t sum = 0;
  for (const MatrixSource& m : sources.matrices) sum += m.n * m.k;
  for (const VectorSource& v : sources.vectors) sum += v.size;
  return sum;
}
Json with(Json config, const char* key, Json value) {
  config[key] = std::move(value);
  return config;
}

TEST_CASE("published models have as many parameters as their authors count") {
  const std::map<std::string, int64_t> counts{
      {"opt-125m", 125'239'296},     {"opt-350m", 331'196'416},       {"opt-1.3b", 1'315'758'080},
      {"opt-6.7b", 6'658'473'984},   {"opt-13b", 12'853'473'280},     {"opt-30b", 29'974'540'288},
      {"llama-2-7b", 6'738'415'616}, {"llama-3.2-1b", 1'235'814'400}, {"smollm2-135m", 134'515'008},
      {"pythia-160m", 162'322'944},  {"gpt-neox-20b", 20'554'567'680}};
  for (const auto& [name, count] : counts) {
    INFO(name);
    CHECK(parameters(described(published(name))) == count);
  }
}

TEST_CASE("OPT: both orders of norms, projected embeddings, tied head") {
  const ModelSpec small = described(published("opt-125m")), odd = described(published("opt-350m"));
  CHECK(small.block.order == BlockOrder::pre_norm);
  CHECK(small.final_norm);
  CHECK(small.tied_head);
  CHECK(small.learned_places);
  CHECK(small.place_offset == 2);
  CHECK(small.block.activation == Activation::relu);
  CHECK(small.block.rotary.dims == 0);
  CHECK(small.eos == std::vector<int32_t>{2});
  CHECK(odd.block.order == BlockOrder::post_norm);
  CHECK_FALSE(odd.final_norm);
  CHECK(odd.embedding == 512);
  CHECK(odd.hidden == 1024);

  const Json config = published("opt-125m");
  CHECK_FALSE(described(with(config, "_remove_final_layer_norm", true)).final_norm);
  CHECK_FALSE(described(with(config, "tie_word_embeddings", false)).tied_head);
  const ModelSpec bare =
      described(with(with(config, "enable_bias", false), "layer_norm_elementwise_affine", false));
  const WeightSources sources = find_family("opt", FileKind::hugging_face, "").sources(bare, {});
  CHECK(sources.vectors.size() == 25);  // two gains a block and the last, all ones
  for (const VectorSource& v : sources.vectors) CHECK(v.names.empty());
}

TEST_CASE("LLaMA: groups, head dimension, biases") {
  const ModelSpec spec = described(published("smollm2-135m"));
  CHECK(spec.block.heads == 9);
  CHECK(spec.block.kv_heads == 3);
  CHECK(spec.block.head_dim == 64);
  CHECK(spec.block.norm == NormKind::rms);
  CHECK(spec.block.gated);
  CHECK(spec.tied_head);
  CHECK(spec.qkv_width() == 960);
  CHECK(spec.block.rotary.inverse_frequency[1] == Approx(std::pow(1e5, -2.0 / 64)));
  CHECK(described(published("llama-3.2-1b")).eos == std::vector<int32_t>{128001, 128008, 128009});

  Json config = published("llama-2-7b");
  CHECK_FALSE(described(config).tied_head);
  CHECK(described(config).block.kv_heads == 32);
  config.erase("tie_word_embeddings");
  config.erase("num_key_value_heads");
  CHECK_FALSE(described(config).tied_head);
  CHECK(described(config).block.kv_heads == 32);
  CHECK(described(with(config, "head_dim", 64)).block.head_dim == 64);
  const ModelSpec biased = described(with(config, "attention_bias", true));
  CHECK(biased.block.qkv_bias);
  CHECK(biased.block.out_bias);
  CHECK_FALSE(biased.block.mlp_bias);
  CHECK(parameters(biased) - parameters(described(config)) == 32 * 4 * 4096);
  CHECK(parameters(described(with(config, "mlp_bias", true))) - parameters(described(config)) ==
        32 * (2 * 11008 + 4096));
}

// LLaMA 3's rule as its authors give it, by wavelengths.
double llama3_frequency(double f, double factor, double low, double high, double length) {
  const double wavelength = 2 * std::numbers::pi / f;
  if (wavelength < length / high) return f;
  if (wavelength > length / low) return f / factor;
  const double smooth = (length / wavelength - low) / (high - low);
  return (1 - smooth) * f / factor + smooth * f;
}

TEST_CASE("LLaMA: scaled rotary frequencies, in every spelling") {
  const RotarySpec scaled = described(published("llama-3.2-1b")).block.rotary;
  REQUIRE(scaled.inverse_frequency.size() == 32);
  int kept = 0, divided = 0;
  for (int i = 0; i < 32; i++) {
    const double plain = std::pow(5e5, -2.0 * i / 64);
    const double expected = llama3_frequency(plain, 32, 1, 4, 8192);
    CHECK(scaled.inverse_frequency[size_t(i)] == Approx(expected).epsilon(1e-12));
    kept += expected == plain;
    divided += expected == plain / 32;
  }
  CHECK(kept > 5);  // all three branches are met
  CHECK(divided > 5);
  CHECK(kept + divided < 32);

  const Json config = published("llama-2-7b");
  const auto second = [&](Json scaling, const char* key = "rope_scaling") {
    return described(with(config, key, std::move(scaling))).block.rotary.inverse_frequency[1];
  };
  const double plain = std::pow(1e4, -2.0 / 128);
  CHECK(second(nullptr) == Approx(plain));
  CHECK(second({{"type", "linear"}, {"factor", 4.0}}) == Approx(plain / 4));
  CHECK(second({{"rope_type", "linear"}, {"factor", 4}}) == Approx(plain / 4));
  CHECK(second({{"rope_type", "default"}}) == Approx(plain));
  CHECK(second({{"rope_type", "default"}, {"rope_theta", 5e5}}, "rope_parameters") ==
        Approx(std::pow(5e5, -2.0 / 128)));
  CHECK(second({{"rope_type", "linear"}, {"factor", 2}, {"rope_theta", 5e5}}, "rope_parameters") ==
        Approx(std::pow(5e5, -2.0 / 128) / 2));

  const auto refused_scaling = [&](Json scaling) {
    return refused(with(config, "rope_scaling", std::move(scaling)));
  };
  CHECK_THAT(refused_scaling({{"rope_type", "yarn"}, {"factor", 4}}),
             Contains("key rope_scaling.rope_type is \"yarn\", known are default, linear and"));
  CHECK_THAT(refused_scaling({{"type", "dynamic"}, {"factor", 4}}), Contains("rope_scaling.type"));
  CHECK_THAT(refused_scaling({{"type", "linear"}}), Contains("rope_scaling.factor is missing"));
  CHECK_THAT(refused_scaling({{"type", "linear"}, {"factor", 0}}), Contains("rope_scaling.factor"));
  CHECK_THAT(refused_scaling({{"type", "linear"}, {"factor", "two"}}), Contains("\"two\""));
  CHECK_THAT(refused_scaling("linear"), Contains("key rope_scaling is \"linear\""));
}

TEST_CASE("GPT-NeoX: partial rotation, both residual orders, biases") {
  const ModelSpec spec = described(published("gpt-neox-20b"));
  CHECK(spec.block.order == BlockOrder::parallel);
  CHECK(spec.block.rotary.dims == 24);
  CHECK(spec.block.rotary.inverse_frequency[1] == Approx(std::pow(1e4, -2.0 / 24)));
  CHECK(spec.block.activation == Activation::gelu_tanh);
  CHECK_FALSE(spec.tied_head);
  const Json config = published("pythia-160m");
  CHECK(described(config).block.activation == Activation::gelu);
  CHECK(described(with(config, "use_parallel_residual", false)).block.order ==
        BlockOrder::pre_norm);
  CHECK(described(with(config, "tie_word_embeddings", true)).tied_head);
  CHECK(described(with(config, "rotary_pct", 1.0)).block.rotary.dims == 64);
  CHECK(described(with(config, "rope_parameters", {{"partial_rotary_factor", 0.5}}))
            .block.rotary.dims == 32);
  CHECK(parameters(described(config)) -
            parameters(described(with(config, "attention_bias", false))) ==
        12 * 4 * 768);
}

TEST_CASE("what the layers cannot do is refused by its key") {
  const Json llama = published("llama-2-7b"), opt = published("opt-125m"),
             neox = published("pythia-160m");
  for (const char* key : {"sliding_window", "num_local_experts", "use_qk_norm"})
    CHECK_THAT(refused(with(llama, key, 4096)), Contains(std::string("key ") + key));
  CHECK(refused(with(llama, "sliding_window", nullptr)) == "nothing was refused");
  CHECK_THAT(refused(with(llama, "hidden_act", "mish")), Contains("key hidden_act is \"mish\""));
  CHECK_THAT(refused(with(llama, "partial_rotary_factor", 0.5)), Contains("whole heads"));
  CHECK_THAT(refused(with(opt, "activation_function", 3)),
             Contains("key activation_function is 3"));
  CHECK_THAT(refused(with(neox, "rotary_pct", 1.5)), Contains("more than 1"));
}

TEST_CASE("impossible shapes are refused by key or number") {
  const Json llama = published("llama-2-7b"), opt = published("opt-125m"),
             neox = published("pythia-160m");
  CHECK_THAT(refused(with(llama, "hidden_size", 0)), Contains("key hidden_size is 0"));
  CHECK_THAT(refused(with(llama, "hidden_size", -4096)), Contains("key hidden_size is -4096"));
  CHECK_THAT(refused(with(llama, "num_hidden_layers", 1e18)), Contains("num_hidden_layers"));
  CHECK_THAT(refused(with(llama, "vocab_size", "many")), Contains("key vocab_size is \"many\""));
  CHECK_THAT(refused(with(llama, "num_key_value_heads", 5)), Contains("not a multiple of 5"));
  CHECK_THAT(refused(with(llama, "num_key_value_heads", 64)), Contains("key/value heads is 64"));
  CHECK_THAT(refused(with(llama, "head_dim", 20)), Contains("not a multiple of 8"));
  CHECK_THAT(refused(with(llama, "rms_norm_eps", 0)), Contains("key rms_norm_eps is 0"));
  CHECK_THAT(refused(with(llama, "eos_token_id", 32000)), Contains("id 32000"));
  CHECK_THAT(refused(with(llama, "eos_token_id", Json::array({2, -1}))), Contains("eos_token_id"));
  CHECK_THAT(refused(with(opt, "num_attention_heads", 7)), Contains("num_attention_heads is 7"));
  CHECK_THAT(refused(with(neox, "num_attention_heads", 7)), Contains("num_attention_heads is 7"));
  for (const char* key : {"hidden_size", "num_hidden_layers", "vocab_size", "intermediate_size"}) {
    Json missing = llama;
    missing.erase(key);
    CHECK_THAT(refused(missing), Contains(std::string("key ") + key + " is missing"));
  }
}

TEST_CASE("an unknown architecture is refused with the known ones") {
  CHECK(refused({{"model_type", "mamba"}}) ==
        "config.json: unknown architecture 'mamba'; known: gpt_neox, llama, opt");
}

}  // namespace
}  // namespace hydrant::test
