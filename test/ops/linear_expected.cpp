#include "test/ops/linear_expected.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/base/half.hpp"

namespace hydrant::test {

std::span<const Product> products_of(const DeviceChoice& choice) {
  return choice.backend == "cpu" ? every_product() : every_card_product();
}

bool on_tensor_cores(const Bench& bench, int64_t tokens, Activations activations) {
  const int64_t most = activations == Activations::int8 ? kSome : kFew;
  return !bench.is_cpu() && tokens > most && activations != Activations::f32;
}

Expected product_of(const FileWeights& w, int64_t output, const float* x, Activations activations,
                    bool tensor_cores) {
  double sum = 0, size = 0, steps = 0, most = 0, largest = 0, weights = 0, inputs = 0;
  for (int64_t i = 0; i < w.k; i++) {
    const double weight = w.values[size_t(output * w.k + i)];
    const double value =
        activations == Activations::bf16 ? double(bf16_to_f32(f32_to_bf16(x[i]))) : double(x[i]);
    sum += weight * value;
    if (activations == Activations::int8 && i % 32 == 0) {
      most = 0;
      for (int64_t j = i; j < i + 32; j++) most = std::max(most, std::abs(double(x[j])));
    }
    const double off = most / 254 * (1 + 1e-4);
    size += std::abs(weight) * (std::abs(value) + off);
    steps += std::abs(weight) * off;
    largest = std::max(largest, std::abs(value));
    weights += std::abs(weight);
    inputs += std::abs(value) + off;
  }
  double tolerance = double(w.k + 3) * kRound * size * (tensor_cores ? 2.02 : 1.01) + steps;
  const double all = 1.01 * 0x1p-11 * size;
  if (tensor_cores || activations == Activations::f16)
    tolerance += 1.01 * 0x1p-38 * largest * weights + (activations == Activations::bf16 ? 0 : all);
  if (tensor_cores && w.format != DType::f16)
    tolerance += 1.01 * 0x1p-25 * inputs + (w.format == DType::bf16 ? 0 : all);
  return {sum, tolerance};
}

Expected product_of_codes(const FileWeights& w, int64_t output, const float* x) {
  const double* const weights = w.values.data() + output * w.k;
  double sum = 0, size = 0;
  for (int64_t b = 0; b < w.k; b += 32) {
    float most = 0;
    double largest = 0, codes = 0, dot = 0;
    for (int64_t i = b; i < b + 32; i++) {
      most = std::max(most, std::abs(x[i]));
      largest = std::max(largest, std::abs(weights[i]));
    }
    for (int64_t i = b; i < b + 32; i++) {
      const double code = std::nearbyint(x[i] * (127.0f / most));
      dot += weights[i] * code;
      codes += std::abs(code);
    }
    sum += dot * double(most / 127.0f);
    // q4_1 and q4_k: scale * code and the minimum are each at most 3 times the largest value, for
    // 32 random codes are not all alike
    size += 3 * largest * codes * double(most / 127.0f);
  }
  return {sum, double(w.k / 32 * 2 + 8) * kRound * size};
}

std::vector<int64_t> widths(DType format) {
  if (block_elements(format) == 1) return {1, 33, 64, 100};
  return block_elements(format) == 32 ? std::vector<int64_t>{32, 288}
                                      : std::vector<int64_t>{256, 768};
}

}  // namespace hydrant::test
