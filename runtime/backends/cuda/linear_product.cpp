#include "runtime/backends/cuda/linear_product.hpp"

#include <algorithm>
#include <optional>

#include "runtime/backends/cuda/blas.hpp"
#include "runtime/backends/cuda/cuda_errors.hpp"
#include "runtime/backends/cuda/cuda_stream.hpp"
#include "runtime/backends/cuda/kernels/linear.hpp"
#include "runtime/backends/cuda/kernels/multiply_int8.hpp"
#include "runtime/base/aligned.hpp"

namespace hydrant::cuda {
namespace {

constexpr int64_t kTileFloats = int64_t{4} << 20;  // of unpacked weights, and of sums
constexpr int kTensorCoresTakeBf16 = 80;           // from this compute capability on

int64_t whole_lines(int64_t floats) { return align_up(floats, int64_t{64}); }  // of 256 bytes

// Outputs of `outputs` that are made at once: as many as the tiles hold, in whole panels.
int64_t tile_outputs(int64_t tokens, int64_t width, int64_t outputs) {
  const int64_t most = std::min(kTileFloats / std::max(tokens, width), outputs);
  return std::max(most, int64_t{1}) / kPanelRows * kPanelRows + kPanelRows;
}

// Where a product's passing values lie.
struct Scratch {
  float *input = nullptr, *weights = nullptr, *sums = nullptr;
  int64_t floats = 0;

  // Made without memory it only measures.
  Scratch(void* memory, int64_t tokens, int64_t width, int64_t outputs) {
    const auto take = [&](int64_t count) {
      float* const at = memory ? static_cast<float*>(memory) + floats : nullptr;
      floats += whole_lines(count);
      return at;
    };
    const bool few = tokens <= kFewTokens;
    const auto codes = few ? int64_t(Int8Rows::bytes(tokens, width) / sizeof(float)) : 0;
    input = take(std::max(tokens * width, codes));
    if (few) return;
    const int64_t tile = tile_outputs(tokens, width, outputs);
    weights = take(tile * width);
    sums = take(tile * tokens);
  }
  size_t bytes() const { return size_t(floats) * sizeof(float); }
};

// One call, part by part; parts that round the input alike share it.
class Product {
 public:
  Product(CudaStream& stream, const LinearArgs& args)
      : stream_(stream),
        in_{args.in.as<float>(), args.in.shape[0], args.in.shape[1]},
        few_(in_.rows <= kFewTokens),
        outputs_(args.out.shape[1]),
        scratch_(stream.scratch(Scratch(nullptr, in_.rows, in_.width, outputs_).bytes()), in_.rows,
                 in_.width, outputs_) {}

  void part(const Weight& weight, const Ending& ending) {
    if (few_ && weight.activations == Activations::int8)
      return check(multiply_int8(stream_.handle(), codes(), weight, ending), "linear");
    if (few_) return check(multiply(stream_.handle(), rounded(weight), weight, ending), "linear");
    const bool as_bf16 = weight.format == DType::bf16 && weight.activations == Activations::bf16 &&
                         capability(stream_.device()) >= kTensorCoresTakeBf16;
    const Rows input = as_bf16 ? Rows{} : rounded(weight);
    if (as_bf16) convert_to_bf16();
    const int64_t step = tile_outputs(in_.rows, in_.width, outputs_);
    for (int64_t first = 0; first < weight.n; first += step) {
      const int64_t count = std::min(step, weight.n - first);
      BlasProduct product{CUDA_R_32F, input.data, nullptr,  scratch_.sums,
                          in_.rows,   count,      in_.width};
      if (as_bf16) {
        product.type = CUDA_R_16BF;
        product.in = scratch_.input;
        product.weight = panel(weight, first);
      } else if (weight.format == DType::f32) {
        product.weight = panel(weight, first);
      } else {
        check(unpack(stream_.handle(), weight, first, count, scratch_.weights), "linear");
        product.weight = scratch_.weights;
      }
      stream_.blas().multiply(product);
      Ending slice = ending;
      slice.first += first;
      check(finish(stream_.handle(), {scratch_.sums, in_.rows, count}, slice), "linear");
    }
  }

 private:
  // Rows of plain weights lie one behind another from panel to panel.
  static const std::byte* panel(const Weight& weight, int64_t row) {
    return static_cast<const std::byte*>(weight.panels) +
           size_t(row / kPanelRows) * weight.panel_bytes;
  }
  Rows rounded(const Weight& weight) {
    if (weight.activations == Activations::f32) return in_;
    if (held_ != weight.activations || held_as_bf16_)
      check(round_input(stream_.handle(), weight.activations, in_, scratch_.input), "linear");
    held_ = weight.activations;
    held_as_bf16_ = false;
    return {scratch_.input, in_.rows, in_.width};
  }
  Int8Rows codes() {
    const Int8Rows rows(scratch_.input, in_.rows, in_.width);
    if (held_ != Activations::int8) check(round_int8(stream_.handle(), in_, rows), "linear");
    held_ = Activations::int8;
    return rows;
  }
  void convert_to_bf16() {
    if (!held_as_bf16_) check(to_bf16(stream_.handle(), in_, scratch_.input), "linear");
    held_as_bf16_ = true;
  }

  CudaStream& stream_;
  const Rows in_;
  const bool few_;
  const int64_t outputs_;
  const Scratch scratch_;
  std::optional<Activations> held_;  // how scratch_.input is rounded
  bool held_as_bf16_ = false;
};

}  // namespace

size_t linear_bytes(int64_t tokens, int64_t width) {
  const Scratch few(nullptr, std::min(tokens, kFewTokens), width, kTileFloats);
  if (tokens <= kFewTokens) return few.bytes();
  // Tiles are largest where neither tokens nor width are: both of at most kTileFloats and a panel.
  const int64_t tile = kTileFloats + kPanelRows * std::max(tokens, width);
  return size_t(whole_lines(tokens * width) + 2 * whole_lines(tile)) * sizeof(float);
}

void linear(CudaStream& stream, const LinearArgs& args) {
  if (args.in.shape[0] == 0) return;
  Product product(stream, args);
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
