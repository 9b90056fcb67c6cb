// GPT-NeoX and Pythia: partly rotated heads, attention and feed-forward side by side (or one after
// the other).
#include "models/registry.hpp"
#include "runtime/model/config_reader.hpp"
#include "runtime/model/outline.hpp"
#include "runtime/model/rope.hpp"
#include "runtime/model/source_list.hpp"

namespace hydrant {
namespace {

// What the two kinds of file call the tensors, without ".weight" and ".bias".
struct Names {
  std::string_view tokens, layers, norm1, qkv, out, norm2, up, down, final_norm, head;
};
constexpr Names kHuggingFace{"embed_in",          "layers.",
                             "input_layernorm",   "attention.query_key_value",
                             "attention.dense",   "post_attention_layernorm",
                             "mlp.dense_h_to_4h", "mlp.dense_4h_to_h",
                             "final_layer_norm",  "embed_out"};
constexpr Names kGguf{"token_embd", "blk.",   "attn_norm", "attn_qkv",    "attn_output",
                      "ffn_norm",   "ffn_up", "ffn_down",  "output_norm", "output"};

// What both kinds of description lead to.
void finish(ModelSpec& spec, bool parallel) {
  spec.family = "gpt_neox";
  BlockSpec& b = spec.block;
  b.kv_heads = b.heads;
  b.head_dim = spec.hidden / b.heads;
  b.order = parallel ? BlockOrder::parallel : BlockOrder::pre_norm;
  b.mlp_bias = true;
}

ModelSpec describe_config(const ModelFiles& files) {
  const ConfigReader config(*files.config, files.description);
  ModelSpec spec = outline_of_config(config);
  spec.max_positions = config.integer("max_position_embeddings", 1, kMostPositions);
  spec.tied_head = config.flag_or("tie_word_embeddings", false);
  spec.bos = config.integer_or("bos_token_id", 0, 0, kMostVocab);

  BlockSpec& b = spec.block;
  b.heads = heads_across(config, "num_attention_heads", spec.hidden, "hidden_size");
  finish(spec, config.flag_or("use_parallel_residual", true));
  b.ffn = config.integer("intermediate_size", 1, kMostWidth);
  b.norm_epsilon = float(config.positive_or("layer_norm_eps", 1e-5));
  b.activation = config.activation_or("hidden_act", Activation::gelu);
  b.qkv_bias = b.out_bias = config.flag_or("attention_bias", true);
  const double base = config.positive_or("rope_theta", 10000),
               share = config.positive_or("partial_rotary_factor", 0.25);
  b.rotary = read_rope(config, b.head_dim,
                       {.theta = config.positive_or("rotary_emb_base", base),
                        .share = config.positive_or("rotary_pct", share)});
  return spec;
}

ModelSpec describe_gguf(const ModelFiles& files) {
  const ConfigReader config(*files.config, files.description, "", "gptneox.");
  ModelSpec spec = outline_of_gguf(files, config);

  BlockSpec& b = spec.block;
  b.heads = heads_across(config, "attention.head_count", spec.hidden, "embedding_length");
  finish(spec, config.flag_or("use_parallel_residual", true));
  b.ffn = config.integer("feed_forward_length", 1, kMostWidth);
  b.norm_epsilon = float(config.positive("attention.layer_norm_epsilon"));
  b.activation = Activation::gelu;  // the file does not say; all published models have it
  b.qkv_bias = files.checkpoint.find("blk.0.attn_qkv.bias");
  b.out_bias = files.checkpoint.find("blk.0.attn_output.bias");
  b.rotary = plain_rotary(config.positive_or("rope.freq_base", 10000),
                          config.integer("rope.dimension_count", 0, b.head_dim));
  if (config.text_or("rope.scaling.type", "none") != "none")
    config.refuse("rope.scaling.type", "known is none");
  return spec;
}

ModelSpec describe_gpt_neox(const ModelFiles& files) {
  return files.kind == FileKind::gguf ? describe_gguf(files) : describe_config(files);
}

// Which rows of the fused tensor are q (part 0), k or v. Hugging Face's files keep a head's q, k
// and v together; GGUF's keep all heads' q, then all k, then all v.
RowOrder part_rows(const BlockSpec& b, int64_t part, FileKind kind) {
  RowOrder order;
  if (kind == FileKind::gguf) {
    order.offset = part * b.heads * b.head_dim;
  } else {
    order.offset = part * b.head_dim;
    order.outer_step = 3 * int64_t{b.head_dim};
    order.inner = b.head_dim;
  }
  return order;
}

void add_block(SourceList& list, const ModelSpec& spec, const Names& n, FileKind kind) {
  const BlockSpec& b = spec.block;
  const auto weight = [](std::string_view name) { return std::string(name) + ".weight"; };
  const auto bias = [](std::string_view name) { return std::string(name) + ".bias"; };
  list.norm(b, Vector::norm1_gain, Vector::norm1_bias, n.norm1, spec.hidden);
  list.qkv(spec,
           {{n.qkv, part_rows(b, 0, kind)},
            {n.qkv, part_rows(b, 1, kind)},
            {n.qkv, part_rows(b, 2, kind)}},
           3 * int64_t{spec.hidden});
  list.matrix(Matrix::out, weight(n.out), spec.hidden, spec.hidden);
  if (b.out_bias) list.vector(Vector::out_bias, bias(n.out), spec.hidden);
  list.norm(b, Vector::norm2_gain, Vector::norm2_bias, n.norm2, spec.hidden);
  list.matrix(Matrix::up, weight(n.up), b.ffn, spec.hidden);
  list.matrix(Matrix::down, weight(n.down), spec.hidden, b.ffn);
  list.vector(Vector::up_bias, bias(n.up), b.ffn);
  list.vector(Vector::down_bias, bias(n.down), spec.hidden);
}

WeightSources gpt_neox_sources(const ModelSpec& spec, FileKind kind) {
  const bool gguf = kind == FileKind::gguf;
  const Names& n = gguf ? kGguf : kHuggingFace;
  SourceList list(gguf ? std::vector<std::string>{""} : std::vector<std::string>{"gpt_neox.", ""},
                  {"rotary_emb.inv_freq", ".attention.bias", ".attention.masked_bias"});
  list.embedding(spec, n.tokens, n.head);
  list.layers(spec, n.layers, [&] { add_block(list, spec, n, kind); });
  list.head(spec, n.final_norm, n.head);
  return list.take();
}

}  // namespace

const ModelFamily& gpt_neox_family() {
  static constexpr ModelFamily kFamily{"gpt_neox", "gptneox", describe_gpt_neox, gpt_neox_sources};
  return kFamily;
}

}  // namespace hydrant
