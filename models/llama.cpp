// LLaMA 1 to 3 and their kin: rotary positions, RMS norm, gated feed-forward, grouped queries.
#include <cmath>

#include "models/registry.hpp"
#include "runtime/base/error.hpp"
#include "runtime/model/config_reader.hpp"
#include "runtime/model/outline.hpp"
#include "runtime/model/rope.hpp"
#include "runtime/model/source_list.hpp"

namespace hydrant {
namespace {

// What the two kinds of file call the tensors, without ".weight" and ".bias".
struct Names {
  std::string_view tokens, layers, norm1, q, k, v, out, norm2, gate, up, down, final_norm, head;
};
constexpr Names kHuggingFace{
    "embed_tokens",     "layers.",          "input_layernorm",  "self_attn.q_proj",
    "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "post_attention_layernorm",
    "mlp.gate_proj",    "mlp.up_proj",      "mlp.down_proj",    "norm",
    "lm_head"};
constexpr Names kGguf{"token_embd", "blk.",        "attn_norm", "attn_q",   "attn_k",
                      "attn_v",     "attn_output", "ffn_norm",  "ffn_gate", "ffn_up",
                      "ffn_down",   "output_norm", "output"};

void describe_common(ModelSpec& spec) {
  spec.family = "llama";
  spec.block.norm = NormKind::rms;
  spec.block.gated = true;
}

struct HeadKeys {
  std::string_view heads, kv_heads, head_dim, hidden;
};
void read_heads(const ConfigReader& config, const HeadKeys& keys, ModelSpec& spec) {
  BlockSpec& b = spec.block;
  b.heads = config.has(keys.head_dim) ? config.integer(keys.heads, 1, kMostHeads)
                                      : heads_across(config, keys.heads, spec.hidden, keys.hidden);
  b.kv_heads = config.integer_or(keys.kv_heads, b.heads, 1, kMostHeads);
  b.head_dim = config.integer_or(keys.head_dim, spec.hidden / b.heads, 1, kMostHeadDim);
}

ModelSpec describe_config(const ModelFiles& files) {
  const ConfigReader config(*files.config, files.description);
  config.refuse_if_set({"sliding_window", "use_qk_norm", "qk_norm", "qk_layernorm", "num_experts",
                        "num_local_experts", "attn_logit_softcapping", "final_logit_softcapping",
                        "no_rope_layers", "attention_multiplier", "residual_multiplier",
                        "embedding_multiplier", "logits_scaling"});
  ModelSpec spec = outline_of_config(config);
  spec.max_positions = config.integer_or("max_position_embeddings", 2048, 1, kMostPositions);
  spec.tied_head = config.flag_or("tie_word_embeddings", false);
  spec.bos = config.integer_or("bos_token_id", 1, 0, kMostVocab);
  describe_common(spec);

  BlockSpec& b = spec.block;
  read_heads(config, {"num_attention_heads", "num_key_value_heads", "head_dim", "hidden_size"},
             spec);
  b.ffn = config.integer("intermediate_size", 1, kMostWidth);
  b.norm_epsilon = float(config.positive_or("rms_norm_eps", 1e-6));
  b.activation = config.activation_or("hidden_act", Activation::silu);
  b.qkv_bias = b.out_bias = config.flag_or("attention_bias", false);
  b.mlp_bias = config.flag_or("mlp_bias", false);
  if (config.positive_or("partial_rotary_factor", 1) != 1)
    config.refuse("partial_rotary_factor", "this family rotates whole heads");
  b.rotary = read_rope(config, b.head_dim, {.theta = config.positive_or("rope_theta", 10000)});
  if (b.rotary.dims != b.head_dim)
    config.refuse("rope_parameters", "this family rotates whole heads");
  return spec;
}

// The divisors by which a converter has written down the scaling of LLaMA 3's frequencies.
void divide_frequencies(const ModelFiles& files, RotarySpec& rotary) {
  const StoredTensor* t = files.checkpoint.find("rope_freqs.weight");
  if (!t) return;
  std::vector<float> divisors(rotary.inverse_frequency.size());
  if (t->dtype != DType::f32 || t->shape != std::vector<int64_t>{int64_t(divisors.size())})
    fail(Fault::bad_file, "{}: tensor {} is {} {}, expected f32 [{}]", files.description, t->name,
         t->type_name, shape_text(t->shape), divisors.size());
  files.checkpoint.read_rows(*t, 0, 1, reinterpret_cast<std::byte*>(divisors.data()));
  for (size_t i = 0; i < divisors.size(); i++) {
    if (!std::isfinite(divisors[i]) || divisors[i] <= 0)
      fail(Fault::bad_file, "{}: tensor {} holds {} at {}, not a positive number",
           files.description, t->name, divisors[i], i);
    rotary.inverse_frequency[i] /= double{divisors[i]};
  }
}

RotarySpec rotary_of_gguf(const ModelFiles& files, const ConfigReader& config, int32_t head_dim) {
  if (config.integer_or("rope.dimension_count", head_dim, 1, kMostHeadDim) != head_dim)
    config.refuse("rope.dimension_count", "this family rotates whole heads");
  RotarySpec rotary = plain_rotary(config.positive_or("rope.freq_base", 10000), head_dim);
  // Without a type a factor means linear scaling; the other key is that of older files.
  const std::string kind = config.text_or("rope.scaling.type", "linear");
  if (kind != "none" && kind != "linear")
    config.refuse("rope.scaling.type", "known are none and linear");
  const double old = config.has("rope.scale_linear") ? config.positive("rope.scale_linear") : 1;
  const double factor = config.positive_or("rope.scaling.factor", old);
  if (kind == "linear")
    for (double& f : rotary.inverse_frequency) f /= factor;
  divide_frequencies(files, rotary);
  return rotary;
}

ModelSpec describe_gguf(const ModelFiles& files) {
  const ConfigReader config(*files.config, files.description, "", "llama.");
  config.refuse_if_set({"expert_count", "expert_used_count", "attention.sliding_window",
                        "attn_logit_softcapping", "final_logit_softcapping", "attention.scale",
                        "attention.clamp_kqv", "logit_scale", "residual_scale", "embedding_scale"});
  const Checkpoint& tensors = files.checkpoint;
  ModelSpec spec = outline_of_gguf(files, config);
  describe_common(spec);

  BlockSpec& b = spec.block;
  read_heads(config,
             {"attention.head_count", "attention.head_count_kv", "attention.key_length",
              "embedding_length"},
             spec);
  if (config.integer_or("attention.value_length", b.head_dim, 1, kMostHeadDim) != b.head_dim)
    config.refuse("attention.value_length", "not the keys' length");
  b.ffn = config.integer("feed_forward_length", 1, kMostWidth);
  b.norm_epsilon = float(config.positive("attention.layer_norm_rms_epsilon"));
  b.activation = Activation::silu;
  b.qkv_bias = tensors.find("blk.0.attn_q.bias");
  b.out_bias = tensors.find("blk.0.attn_output.bias");
  b.mlp_bias = tensors.find("blk.0.ffn_up.bias");
  b.rotary = rotary_of_gguf(files, config, b.head_dim);
  return spec;
}

ModelSpec describe_llama(const ModelFiles& files) {
  return files.kind == FileKind::gguf ? describe_gguf(files) : describe_config(files);
}

// GGUF stores the rows of q and k so that a rotated pair lies together (2i, 2i + 1); ours are
// Hugging Face's, i and i + head_dim / 2.
RowOrder paired_rows(int32_t head_dim) {
  RowOrder order;
  order.outer_step = head_dim;
  order.middle = 2;
  order.inner = head_dim / 2;
  order.inner_step = 2;
  return order;
}

void add_block(SourceList& list, const ModelSpec& spec, const Names& n, bool paired) {
  const BlockSpec& b = spec.block;
  const RowOrder rows = paired ? paired_rows(b.head_dim) : RowOrder{};
  const auto weight = [](std::string_view name) { return std::string(name) + ".weight"; };
  const auto bias = [](std::string_view name) { return std::string(name) + ".bias"; };
  list.norm(b, Vector::norm1_gain, Vector::norm1_bias, n.norm1, spec.hidden);
  list.qkv(spec, {{n.q, rows}, {n.k, rows}, {n.v, {}}});
  list.matrix(Matrix::out, weight(n.out), spec.hidden, int64_t{b.heads} * b.head_dim);
  if (b.out_bias) list.vector(Vector::out_bias, bias(n.out), spec.hidden);
  list.norm(b, Vector::norm2_gain, Vector::norm2_bias, n.norm2, spec.hidden);
  list.matrix(Matrix::gate, weight(n.gate), b.ffn, spec.hidden);
  list.matrix(Matrix::up, weight(n.up), b.ffn, spec.hidden);
  list.matrix(Matrix::down, weight(n.down), spec.hidden, b.ffn);
  if (b.mlp_bias) {
    list.vector(Vector::up_bias, bias(n.gate), b.ffn).vector_size = 2 * int64_t{b.ffn};
    VectorSource& up = list.vector(Vector::up_bias, bias(n.up), b.ffn);
    up.begin = b.ffn;
    up.vector_size = 2 * int64_t{b.ffn};
    list.vector(Vector::down_bias, bias(n.down), spec.hidden);
  }
}

WeightSources llama_sources(const ModelSpec& spec, FileKind kind) {
  const bool gguf = kind == FileKind::gguf;
  const Names& n = gguf ? kGguf : kHuggingFace;
  SourceList list(gguf ? std::vector<std::string>{""} : std::vector<std::string>{"model.", ""},
                  {"rotary_emb.inv_freq", "rope_freqs.weight"});
  list.embedding(spec, n.tokens, n.head);
  list.layers(spec, n.layers, [&] { add_block(list, spec, n, gguf); });
  list.head(spec, n.final_norm, n.head);
  return list.take();
}

}  // namespace

const ModelFamily& llama_family() {
  static constexpr ModelFamily kFamily{"llama", "llama", describe_llama, llama_sources};
  return kFamily;
}

}  // namespace hydrant
