#include <fmt/format.h>

#include <array>
#include <cstring>

#include "runtime/apps/measure.hpp"
#include "runtime/base/aligned.hpp"

namespace hydrant {
namespace {

constexpr std::array<DType, 8> kFormats{DType::f32,  DType::f16,  DType::bf16, DType::q8_0,
                                        DType::q4_0, DType::q4_1, DType::q4_k, DType::q6_k};
constexpr std::array<int64_t, 9> kRows{1, 2, 4, 8, 16, 32, 64, 128, 256};
constexpr int64_t kInputs = 1024, kOutputs = 2048, kFewOutputs = 128;
constexpr size_t kWeightBytes = size_t{96} << 20;  // passed through in turn: more than caches hold

// What a model's products round their inputs to, by default and with compute.dtype f32.
std::vector<Activations> activations_of(const Ops& ops, DType format) {
  const Activations usual = ops.activations(format);
  if (usual == Activations::f32) return {usual};
  return {usual, Activations::f32};
}

class Products {
 public:
  explicit Products(Device& device)
      : device_(device),
        stream_(device.make_stream("compute", /*inline_work=*/true)),
        weights_(
            device.allocate(Memory::device, kWeightBytes, "weights to measure products with")) {
    Arena size;
    lay_out(size);
    memory_ = device.allocate(Memory::device, size.used(), "inputs to measure products with");
    Arena arena(memory_);
    lay_out(arena);
    std::vector<float> input(size_t(kRows.back() * kInputs));
    for (size_t i = 0; i < input.size(); i++) input[i] = float(i % 31) * 0.1f - 1.5f;
    stream_->copy(in_.data, input.data(), input.size() * sizeof(float));
    stream_->synchronize();
  }

  ProductRate measure(DType format, Activations activations) {
    fill(format);
    ProductRate rate{format, activations, {}, {}};
    rate.weight.beyond = rate.call.beyond = Curve::Beyond::straight;
    std::array<std::vector<double>, kRows.size()> wide, narrow;
    for (int round = 0; round < kRounds; round++)
      for (size_t i = 0; i < kRows.size(); i++) {
        wide[i].push_back(seconds(format, activations, kRows[i], kOutputs));
        narrow[i].push_back(seconds(format, activations, kRows[i], kFewOutputs));
      }
    for (size_t i = 0; i < kRows.size(); i++) {
      const int64_t rows = kRows[i];
      const double all = median(wide[i]), few = median(narrow[i]);
      const double weight = (all - few) / double((kOutputs - kFewOutputs) * kInputs);
      rate.weight.points.emplace_back(double(rows), std::max(weight, 0.0));
      rate.call.points.emplace_back(double(rows * kInputs),
                                    std::max(few - weight * double(kFewOutputs * kInputs), 0.0));
    }
    return rate;
  }

  double fork_join() {
    fill(DType::f32);
    const int64_t outputs = 2 * kPanelRows * device_.threads();
    return seconds(DType::f32, Activations::f32, 1, outputs, /*inputs=*/32);
  }

 private:
  void lay_out(Arena& arena) {
    in_ = arena.take(DType::f32, {kRows.back(), kInputs});
    out_ = arena.take(DType::f32, {kRows.back(), kOutputs});
  }

  // Panels whose bytes mean some number in every format; which one does not matter.
  void fill(DType format) {
    panel_bytes_ = device_.ops().panel_bytes(format, kInputs);
    const std::vector<std::byte> row(size_t(row_bytes(format, kInputs)), std::byte{0x2c});
    const std::vector<const std::byte*> rows(size_t(kPanelRows), row.data());
    const size_t panels = kWeightBytes / panel_bytes_;
    std::vector<std::byte> some(panel_bytes_ * size_t(ceil_div(kOutputs, kPanelRows)));
    device_.ops().pack_panel(format, kInputs, rows, some.data());
    for (size_t at = panel_bytes_; at < some.size(); at += panel_bytes_)
      std::memcpy(some.data() + at, some.data(), panel_bytes_);
    auto* to = static_cast<std::byte*>(weights_.data());
    for (size_t p = 0; p < panels; p += some.size() / panel_bytes_)
      stream_->copy(to + p * panel_bytes_, some.data(),
                    std::min(some.size(), (panels - p) * panel_bytes_));
    stream_->synchronize();
  }

  double seconds(DType format, Activations activations, int64_t rows, int64_t outputs,
                 int64_t inputs = kInputs) {
    const size_t bytes = panel_bytes_ * size_t(ceil_div(outputs, kPanelRows)),
                 places = kWeightBytes / bytes;
    LinearArgs args;
    args.in = {in_.data, DType::f32, {rows, inputs}};
    args.out = {out_.data, DType::f32, {rows, outputs}};
    return seconds_of_call([&](size_t call) {
      args.parts[0] = {static_cast<const std::byte*>(weights_.data()) + call % places * bytes,
                       format,
                       activations,
                       outputs,
                       inputs,
                       device_.ops().panel_bytes(format, inputs)};
      device_.ops().linear(*stream_, args);
      stream_->synchronize();
    });
  }

  Device& device_;
  std::unique_ptr<Stream> stream_;
  Buffer weights_, memory_;
  Tensor in_, out_;
  size_t panel_bytes_ = 0;
};

}  // namespace

void measure_products(Device& device, MachineRates& rates, const Measuring& measuring) {
  Products products(device);
  measuring("fork and join");
  rates.fork_join = products.fork_join();
  for (const DType format : kFormats)
    for (const Activations activations : activations_of(device.ops(), format)) {
      measuring(fmt::format("products of {}", name(format)));
      rates.products.push_back(products.measure(format, activations));
    }
}

}  // namespace hydrant
