#include "runtime/model/spec.hpp"

#include <cmath>

#include "runtime/base/error.hpp"
#include "runtime/model/config_reader.hpp"

namespace hydrant {
namespace {

void within(const std::string& file, std::string_view what, int64_t value, int64_t least,
            int64_t most) {
  if (value < least || value > most)
    fail(Fault::bad_file, "{}: the model's {} is {}, possible are {} to {}", file, what, value,
         least, most);
}

}  // namespace

void validate(const ModelSpec& spec, const std::string& file) {
  const BlockSpec& b = spec.block;
  within(file, "number of layers", spec.layers, 1, kMostLayers);
  within(file, "vocabulary", spec.vocab, 1, kMostVocab);
  within(file, "hidden size", spec.hidden, 1, kMostWidth);
  within(file, "embedding width", spec.embedding, 1, kMostWidth);
  within(file, "width of the feed-forward layer", b.ffn, 1, kMostWidth);
  within(file, "longest sequence", spec.max_positions, 1, kMostPositions);
  within(file, "number of heads", b.heads, 1, kMostHeads);
  within(file, "number of key/value heads", b.kv_heads, 1, b.heads);
  within(file, "head dimension", b.head_dim, 8, kMostHeadDim);
  within(file, "number of rotated components", b.rotary.dims, 0, b.head_dim);
  if (b.heads % b.kv_heads != 0)
    fail(Fault::bad_file, "{}: {} heads are not a multiple of {} key/value heads", file, b.heads,
         b.kv_heads);
  if (b.head_dim % 8 != 0)
    fail(Fault::bad_file, "{}: a head dimension of {} is not a multiple of 8", file, b.head_dim);
  within(file, "width of queries, keys and values",
         (int64_t{b.heads} + 2 * int64_t{b.kv_heads}) * b.head_dim, 1, 4 * int64_t{kMostWidth});
  if (b.rotary.dims % 2 != 0)
    fail(Fault::bad_file, "{}: {} rotated components cannot be paired", file, b.rotary.dims);
  ensure(b.rotary.inverse_frequency.size() == size_t(b.rotary.dims / 2), "{}: {} frequencies", file,
         b.rotary.inverse_frequency.size());
  for (const double f : b.rotary.inverse_frequency)
    if (!std::isfinite(f)) fail(Fault::bad_file, "{}: a rotary frequency is not finite", file);
  if (!(b.norm_epsilon > 0) || !std::isfinite(b.norm_epsilon))
    fail(Fault::bad_file, "{}: a norm's epsilon is {}, not a positive number", file,
         b.norm_epsilon);
  for (const int32_t id : spec.eos)
    if (id >= spec.vocab)
      fail(Fault::bad_file, "{}: the end-of-text id {} is not below the vocabulary's {}", file, id,
           spec.vocab);
  if (spec.bos >= spec.vocab)
    fail(Fault::bad_file, "{}: the begin-of-text id {} is not below the vocabulary's {}", file,
         spec.bos, spec.vocab);
}

}  // namespace hydrant
