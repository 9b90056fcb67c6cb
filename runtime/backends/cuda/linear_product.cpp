#include "runtime/backends/cuda/linear_product.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/backends/cuda/blas.hpp"
#include "runtime/backends/cuda/cuda_errors.hpp"
#include "runtime/backends/cuda/cuda_stream.hpp"
#include "runtime/backends/cuda/kernels/linear.hpp"
#include "runtime/backends/cuda/kernels/linear_f16.hpp"
#include "runtime/backends/cuda/kernels/multiply_int8.hpp"
#include "runtime/backends/cuda/kernels/multiply_int8_mma.hpp"
#include "runtime/base/aligned.hpp"

namespace hydrant::cuda {
namespace {

constexpr size_t kTileBytes = size_t{16} << 20;  // of unpacked weights, and of sums
constexpr size_t kLine = 256;

// How a product of many tokens goes through cuBLAS: the type of its operands, whose rows lie
// `width` apart, and whether the weights are taken from where they are.
struct Way {
  cudaDataType type;
  int64_t width;
  bool in_place;

  size_t row_bytes() const {
    return size_t(width) * (type == CUDA_R_32F ? sizeof(float) : sizeof(uint16_t));
  }
};

// Only what must not be rounded is multiplied in f32, which has no tensor cores. bf16 is taken in
// place whatever its width: where rows are no whole pieces of 16 bytes cuBLAS has slower kernels.
Way way_of(const Weight& weight, int capability) {
  if (weight.activations == Activations::f32)
    return {CUDA_R_32F, weight.k, weight.format == DType::f32};
  if (weight.format == DType::bf16 && weight.activations == Activations::bf16 &&
      capability >= kTensorCoresTakeBf16)
    return {CUDA_R_16BF, weight.k, true};
  const int64_t width = half_width(weight.k);
  return {CUDA_R_16F, width, weight.format == DType::f16 && weight.k == width};
}

// Outputs of `outputs` that are made at once: as many as the tiles hold, in whole panels.
int64_t outputs_at_once(const Way& way, int64_t tokens, int64_t outputs) {
  size_t most = kTileBytes / (size_t(tokens) * sizeof(float));
  if (!way.in_place) most = std::min(most, kTileBytes / way.row_bytes());
  return align_up(std::clamp(int64_t(most), int64_t{1}, outputs), kPanelRows);
}

// Whether tokens go as int8 codes through kernels of our own, up to kFewTokens or above.
bool as_codes(const Weight& weight, int64_t tokens) {
  return weight.activations == Activations::int8 && tokens <= kSomeTokens;
}

size_t few_bytes(int64_t tokens, int64_t width) {
  return std::max(size_t(tokens * width) * sizeof(float), Int8Rows::bytes(tokens, width));
}

// Where a product's passing values lie.
struct Scratch {
  std::byte *input = nullptr, *weights = nullptr;
  float *factors = nullptr, *sums = nullptr;  // of tokens
  size_t bytes = 0;

  // Made without memory it only measures.
  Scratch(void* memory, const LinearArgs& args, int capability) {
    const auto take = [&](size_t count) {
      std::byte* const at = memory ? static_cast<std::byte*>(memory) + bytes : nullptr;
      bytes += align_up(count, kLine);
      return at;
    };
    const int64_t tokens = args.in.shape[0], width = args.in.shape[1];
    if (tokens <= kFewTokens) {
      input = take(few_bytes(tokens, width));
      return;
    }
    size_t inputs = 0, tile = 0;
    int64_t outputs = 0;
    bool scaled = false;
    for (const Weight& weight : args.parts) {
      if (!weight) break;
      if (as_codes(weight, tokens)) {
        inputs = std::max(inputs, Int8Tiles::bytes(tokens, width));
        continue;
      }
      const Way way = way_of(weight, capability);
      const int64_t step = outputs_at_once(way, tokens, weight.n);
      if (way.type != CUDA_R_32F) inputs = std::max(inputs, size_t(tokens) * way.row_bytes());
      if (!way.in_place) tile = std::max(tile, size_t(step) * way.row_bytes());
      outputs = std::max(outputs, step);
      scaled |= way.type == CUDA_R_16F;
    }
    input = take(inputs);
    factors = reinterpret_cast<float*>(take(scaled ? size_t(tokens) * sizeof(float) : 0));
    weights = take(tile);
    sums = reinterpret_cast<float*>(take(size_t(tokens * outputs) * sizeof(float)));
  }
};

// One call, part by part; parts that round the input alike share it.
class Product {
 public:
  Product(CudaStream& stream, const LinearArgs& args, int32_t multiprocessors)
      : stream_(stream),
        multiprocessors_(multiprocessors),
        in_{args.in.as<float>(), args.in.shape[0], args.in.shape[1]},
        few_(in_.rows <= kFewTokens),
        capability_(capability(stream.device())),
        scratch_(stream.scratch(Scratch(nullptr, args, capability_).bytes), args, capability_) {}

  void part(const Weight& weight, const Ending& ending) {
    if (as_codes(weight, in_.rows))
      return check(few_ ? multiply_int8(stream_.handle(), codes<Int8Rows>(), weight, ending)
                        : multiply_int8_mma(stream_.handle(), codes<Int8Tiles>(), weight, ending,
                                            multiprocessors_),
                   "linear");
    if (few_) return check(multiply(stream_.handle(), rounded(weight), weight, ending), "linear");
    const Way way = way_of(weight, capability_);
    BlasProduct product{
        way.type, input(way, weight.activations), nullptr, scratch_.sums, in_.rows, 0, way.width};
    const float* const factors = way.type == CUDA_R_16F ? scratch_.factors : nullptr;
    const int64_t step = outputs_at_once(way, in_.rows, weight.n);
    for (int64_t first = 0; first < weight.n; first += step) {
      product.outputs = std::min(step, weight.n - first);
      product.weight = rows(way, weight, first, product.outputs);
      stream_.blas().multiply(product);
      Ending slice = ending;
      slice.first += first;
      check(finish(stream_.handle(), {scratch_.sums, in_.rows, product.outputs}, factors, slice),
            "linear");
    }
  }

 private:
  // Rows [first, first + count) of W. Those of plain weights lie one behind another from panel to
  // panel.
  const std::byte* rows(const Way& way, const Weight& weight, int64_t first, int64_t count) {
    if (way.in_place)
      return static_cast<const std::byte*>(weight.panels) +
             size_t(first / kPanelRows) * weight.panel_bytes;
    if (way.type == CUDA_R_16F)
      check(unpack_f16(stream_.handle(), weight, first, count, scratch_.weights), "linear");
    else
      check(unpack(stream_.handle(), weight, first, count,
                   reinterpret_cast<float*>(scratch_.weights)),
            "linear");
    return scratch_.weights;
  }
  const void* input(const Way& way, Activations activations) {
    if (way.type == CUDA_R_32F) return in_.data;
    if (hold(way.type, activations)) {
      if (way.type == CUDA_R_16BF)
        check(to_bf16(stream_.handle(), in_, scratch_.input), "linear");
      else
        check(to_f16(stream_.handle(), activations, in_, scratch_.input, scratch_.factors),
              "linear");
    }
    return scratch_.input;
  }
  Rows rounded(const Weight& weight) {
    if (weight.activations == Activations::f32) return in_;
    auto* const to = reinterpret_cast<float*>(scratch_.input);
    if (hold(CUDA_R_32F, weight.activations)) {
      const auto round = weight.activations == Activations::f16 ? round_f16 : round_bf16;
      check(round(stream_.handle(), in_, to), "linear");
    }
    return {to, in_.rows, in_.width};
  }
  template <class Codes>
  Codes codes() {
    const Codes rows(scratch_.input, in_.rows, in_.width);
    if (hold(CUDA_R_8I, Activations::int8))
      check(round_int8(stream_.handle(), in_, rows), "linear");
    return rows;
  }
  // Whether scratch_.input has yet to be made so, which it then is.
  bool hold(cudaDataType type, Activations activations) {
    const std::pair wanted{type, activations};
    return std::exchange(held_, wanted) != wanted;
  }

  using Held = std::optional<std::pair<cudaDataType, Activations>>;
  CudaStream& stream_;
  const int32_t multiprocessors_;
  const Rows in_;
  const bool few_;
  const int capability_;
  const Scratch scratch_;
  Held held_;
};

}  // namespace

size_t linear_bytes(int64_t tokens, int64_t width) {
  const size_t few = few_bytes(std::min(tokens, kFewTokens), width);
  if (tokens <= kFewTokens) return align_up(few, kLine);
  // Tiles hold kTileBytes and less than a panel more, or one panel.
  const auto line = [](size_t bytes) { return align_up(bytes, kLine); };
  const size_t halves = size_t(tokens * half_width(width)) * sizeof(uint16_t);
  const size_t codes = tokens <= kSomeTokens ? Int8Tiles::bytes(tokens, width) : 0;
  return line(std::max(halves, codes)) + line(size_t(tokens) * sizeof(float)) +
         line(kTileBytes + size_t(kPanelRows * half_width(width)) * sizeof(float)) +
         line(kTileBytes + size_t(kPanelRows * tokens) * sizeof(float));
}

void linear(CudaStream& stream, const LinearArgs& args, int32_t multiprocessors) {
  if (args.in.shape[0] == 0) return;
  Product product(stream, args, multiprocessors);
  Ending ending{
      args.bias.as<float>(), args.residual.as<float>(), args.after, args.out.as<float>(), 0,
      args.out.shape[1]};
  for (const Weight& weight : args.parts) {
    if (!weight) break;
    product.part(weight, ending);
    ending.first += weight.n;
  }
}

}  // namespace hydrant::cuda
