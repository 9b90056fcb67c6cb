// A decoder-only transformer as data: what the layers interpret.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/device/kinds.hpp"

namespace hydrant {

// pre_norm: OPT, LLaMA, sequential GPT-NeoX. post_norm: OPT-350m. parallel: GPT-NeoX (attention and
// MLP both read the block's input, through their own norms).
enum class BlockOrder : uint8_t { pre_norm, post_norm, parallel };

struct RotarySpec {
  int32_t dims = 0;                       // components rotated per head; 0: none
  std::vector<double> inverse_frequency;  // [dims / 2], scaling already applied
};

// All blocks of the supported families are alike, so one description serves them.
struct BlockSpec {
  int32_t heads = 0, kv_heads = 0, head_dim = 0, ffn = 0;
  NormKind norm = NormKind::layer;
  float norm_epsilon = 1e-5f;
  BlockOrder order = BlockOrder::pre_norm;
  Activation activation = Activation::relu;
  bool gated = false;  // down(activation(gate x) * up x) instead of down(activation(up x))
  bool qkv_bias = false, out_bias = false, mlp_bias = false;
  bool norm_affine = true;  // norms have gains (and layer norms biases)
  RotarySpec rotary;
};

struct ModelSpec {
  std::string family;  // "opt", "llama", "gpt_neox"
  int32_t vocab = 0;   // rows of the embedding and of the head (may exceed the tokenizer's ids)
  int32_t hidden = 0;
  int32_t embedding = 0;  // width of the token embedding; != hidden: projected in and out
  int32_t layers = 0;
  int32_t max_positions = 0;
  bool learned_places = false;
  int32_t place_offset = 0;  // OPT: the table's first two rows are unused
  bool tied_head = false;
  bool final_norm = true;
  BlockSpec block;
  std::vector<int32_t> eos;  // ids that end a text; may be empty
  int32_t bos = -1;          // -1: none

  int32_t qkv_width() const { return (block.heads + 2 * block.kv_heads) * block.head_dim; }
  int32_t stages() const { return layers + 2; }  // embedding, blocks, head
};

// Throws bad_file ("NAME: key ...") for anything impossible: zero or huge extents, heads not a
// multiple of kv_heads, head_dim not a multiple of 8, rotary dims odd or beyond head_dim.
void validate(const ModelSpec& spec, const std::string& file);

}  // namespace hydrant
