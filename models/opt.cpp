// OPT: learned places, layer norm before (or, in the 350m shape, behind) each half of a block.
#include "models/registry.hpp"
#include "runtime/model/config_reader.hpp"
#include "runtime/model/outline.hpp"
#include "runtime/model/source_list.hpp"

namespace hydrant {
namespace {

constexpr int32_t kPlaceOffset = 2;  // the first two rows of the table are unused

ModelSpec describe_opt(const ModelFiles& files) {
  const ConfigReader config(*files.config, files.description);
  ModelSpec spec = outline_of_config(config);
  spec.family = "opt";
  spec.embedding = config.integer_or("word_embed_proj_dim", spec.hidden, 1, kMostWidth);
  spec.max_positions = config.integer("max_position_embeddings", 1, kMostPositions);
  spec.learned_places = true;
  spec.place_offset = kPlaceOffset;
  spec.tied_head = config.flag_or("tie_word_embeddings", true);
  spec.bos = config.integer_or("bos_token_id", 2, 0, kMostVocab);

  BlockSpec& b = spec.block;
  b.heads = b.kv_heads = heads_across(config, "num_attention_heads", spec.hidden, "hidden_size");
  b.head_dim = spec.hidden / b.heads;
  b.ffn = config.integer("ffn_dim", 1, kMostWidth);
  b.activation = config.activation_or("activation_function", Activation::relu);
  b.qkv_bias = b.out_bias = b.mlp_bias = config.flag_or("enable_bias", true);
  b.norm_affine = config.flag_or("layer_norm_elementwise_affine", true);
  const bool before = config.flag_or("do_layer_norm_before", true);
  b.order = before ? BlockOrder::pre_norm : BlockOrder::post_norm;
  spec.final_norm = before && !config.flag_or("_remove_final_layer_norm", false);
  return spec;
}

void add_block(SourceList& list, const ModelSpec& spec) {
  const BlockSpec& b = spec.block;
  list.norm(b, Vector::norm1_gain, Vector::norm1_bias, "self_attn_layer_norm", spec.hidden);
  list.qkv(spec, {{"self_attn.q_proj", {}}, {"self_attn.k_proj", {}}, {"self_attn.v_proj", {}}});
  list.matrix(Matrix::out, "self_attn.out_proj.weight", spec.hidden, spec.hidden);
  if (b.out_bias) list.vector(Vector::out_bias, "self_attn.out_proj.bias", spec.hidden);
  list.norm(b, Vector::norm2_gain, Vector::norm2_bias, "final_layer_norm", spec.hidden);
  list.matrix(Matrix::up, "fc1.weight", b.ffn, spec.hidden);
  list.matrix(Matrix::down, "fc2.weight", spec.hidden, b.ffn);
  if (b.mlp_bias) {
    list.vector(Vector::up_bias, "fc1.bias", b.ffn);
    list.vector(Vector::down_bias, "fc2.bias", spec.hidden);
  }
}

WeightSources opt_sources(const ModelSpec& spec, FileKind) {
  SourceList list({"model.decoder.", "decoder."}, {"decoder.version"});
  list.embedding(spec, "embed_tokens", "lm_head");
  list.matrix(Matrix::places, "embed_positions.weight", spec.max_positions + kPlaceOffset,
              spec.hidden);
  const bool projected = spec.embedding != spec.hidden;
  if (projected) list.matrix(Matrix::project_in, "project_in.weight", spec.hidden, spec.embedding);
  list.layers(spec, "layers.", [&] { add_block(list, spec); });
  list.head(spec, "final_layer_norm", "lm_head");
  if (projected)
    list.matrix(Matrix::project_out, "project_out.weight", spec.embedding, spec.hidden);
  return list.take();
}

}  // namespace

const ModelFamily& opt_family() {
  static constexpr ModelFamily kFamily{"opt", "", describe_opt, opt_sources};
  return kFamily;
}

}  // namespace hydrant
