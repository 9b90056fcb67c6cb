// Products against double precision.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "runtime/backends/cpu/kernels/linear.hpp"
#include "runtime/base/half.hpp"
#include "test/ops/linear_case.hpp"

using namespace hydrant;
using namespace hydrant::test;
using cpu::Isa;
using cpu::ThreadPool;

namespace {

constexpr double kUnit = 0x1p-24;  // a rounding's relative error in f32

// What a product should be and how far a correct one may be from it.
struct Expected {
  double value, bound;
};

// f32 and bf16 activations: k fused steps, each rounding a partial sum that is at most the sum of
// the terms' sizes. (A BF16 instruction may round once more per pair.)
Expected chain(const double* w, const float* x, int64_t k, Activations activations) {
  double sum = 0, size = 0;
  for (int64_t i = 0; i < k; i++) {
    const double term =
        w[i] *
        (activations == Activations::bf16 ? double(bf16_to_f32(f32_to_bf16(x[i]))) : double(x[i]));
    sum += term;
    size += std::abs(term);
  }
  // exact quantised weights are rounded to f32 first: one more
  return {sum, double(k + 2) * kUnit * size};
}

// int8 activations: each x may be off by half a step of its block, max|x| / 254, a little more with
// the roundings of the scale and of x / scale; then up to three roundings per block in the chain,
// of terms no larger than the codes allow.
Expected blocks(const double* w, const float* x, int64_t k) {
  double sum = 0, bound = 0;
  for (int64_t b = 0; b < k; b += 32) {
    double most = 0, weights = 0;
    for (int64_t i = b; i < b + 32; i++) {
      most = std::max(most, std::abs(double(x[i])));
      weights += std::abs(w[i]);
      sum += w[i] * x[i];
    }
    bound += most / 254 * (1 + 1e-4) * weights;
  }
  return {sum, bound};
}

void check_product(Isa isa, Product what, int64_t n, int64_t k, int64_t t) {
  INFO(name(isa) << " " << name(what.format) << " activations " << int(what.activations) << " n "
                 << n << " k " << k << " t " << t);
  const FileWeights file = random_weights(what.format, n, k, uint32_t(n * 7 + k));
  const PackedWeights packed(file, what.activations);
  const auto x = random_floats(t * k, uint32_t(t));
  ThreadPool pool(1);
  const auto y = product(pool, isa, {{packed.weight()}, {}, {}, Activation::none}, x, t);
  for (int64_t r = 0; r < t; r++)
    for (int64_t j = 0; j < n; j++) {
      const double* w = &file.values[size_t(j * k)];
      const float* in = &x[size_t(r * k)];
      const Expected e = what.activations == Activations::int8 ? blocks(w, in, k)
                                                               : chain(w, in, k, what.activations);
      const double got = y[size_t(r * n + j)];
      if (!(std::abs(got - e.value) <= e.bound))
        FAIL("row " << r << " output " << j << " is " << got << ", should be " << e.value << " +- "
                    << e.bound);
    }
}

std::vector<int64_t> widths(DType format) {
  if (block_elements(format) == 1) return {1, 2, 3, 31, 33, 64, 100};
  if (block_elements(format) == 32) return {32, 64, 96, 288};
  return {256, 768};
}

}  // namespace

TEST_CASE(
    "products of every format, activation kind and path are as exact as their roundings allow") {
  for (const Isa isa : cpu::usable_isas())
    for (const Product what : every_product()) {
      for (const int64_t k : widths(what.format))
        for (const int64_t n : {1, 16, 49}) check_product(isa, what, n, k, 3);
      for (const int64_t t : {1, 2, 5, 7, 8, 9, 12, 14, 16, 17, 27})  // every shape of tiles
        check_product(isa, what, 100, widths(what.format).back(), t);
    }
}

TEST_CASE("int8 products equal sums of exact block dots") {
  // the same arithmetic in double: what is left are the roundings of the chain over blocks
  for (const Isa isa : cpu::usable_isas())
    for (const Product what : every_product()) {
      if (what.activations != Activations::int8) continue;
      const int64_t n = 33, k = 768, t = 5;
      const FileWeights file = random_weights(what.format, n, k, 11);
      const PackedWeights packed(file, what.activations);
      const auto x = random_floats(t * k, 12);
      ThreadPool pool(1);
      const auto y = product(pool, isa, {{packed.weight()}, {}, {}, Activation::none}, x, t);
      for (int64_t r = 0; r < t; r++)
        for (int64_t j = 0; j < n; j++) {
          double sum = 0, size = 0;
          for (int64_t b = 0; b < k; b += 32) {
            float most = 0;
            double largest = 0, codes = 0;
            for (int64_t i = b; i < b + 32; i++) {
              most = std::max(most, std::abs(x[size_t(r * k + i)]));
              largest = std::max(largest, std::abs(file.values[size_t(j * k + i)]));
            }
            for (int64_t i = b; i < b + 32; i++) {
              const double code = std::nearbyint(x[size_t(r * k + i)] * (127.0f / most));
              sum += file.values[size_t(j * k + i)] * code * double(most / 127.0f);
              codes += std::abs(code);
            }
            // q4_1 and q4_k: scale * code and the minimum are each at most 3 times the largest
            // value
            size += 3 * largest * codes * double(most / 127.0f);
          }
          // per block: the dot's own rounding (q6_k), the product of the scales, the minimum's
          // factor, two steps of the chain
          const double bound = (double(k / 32) * 2 + 4) * kUnit * size;
          if (!(std::abs(y[size_t(r * n + j)] - sum) <= bound))
            FAIL(name(isa) << " " << name(what.format) << ": " << y[size_t(r * n + j)]
                           << ", should be " << sum << " +- " << bound);
        }
    }
}

TEST_CASE("bias, then the activation, then the residual end a chain") {
  const int64_t n = 37, k = 96, t = 5;
  const FileWeights file = random_weights(DType::f32, n, k, 3);
  const PackedWeights packed(file, Activations::f32);
  const auto x = random_floats(t * k, 4);
  LinearCase c{{packed.weight()}, random_floats(n, 5), random_floats(t * n, 6), Activation::none};
  ThreadPool pool(2);
  const auto after = [](Activation kind, double v) {
    switch (kind) {
      case Activation::none:
        return v;
      case Activation::relu:
        return std::max(v, 0.0);
      case Activation::silu:
        return v / (1 + std::exp(-v));
      case Activation::gelu:
        return v / 2 * (1 + std::erf(v / std::sqrt(2.0)));
      case Activation::gelu_tanh:
        return v / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
    }
    return v;
  };
  for (const Isa isa : cpu::usable_isas())
    for (const auto kind : {Activation::none, Activation::relu, Activation::silu, Activation::gelu,
                            Activation::gelu_tanh}) {
      c.after = kind;
      const auto y = product(pool, isa, c, x, t);
      for (int64_t r = 0; r < t; r++)
        for (int64_t j = 0; j < n; j++) {
          const Expected e =
              chain(&file.values[size_t(j * k)], &x[size_t(r * k)], k, Activations::f32);
          const double before = e.value + double(c.bias[size_t(j)]);
          const double value = after(kind, before) + double(c.residual[size_t(r * n + j)]);
          // slopes of the activations are below 1.2; they themselves are right to 1e-6 of their
          // input
          const double bound =
              1.2 * e.bound + 1e-6 * std::abs(before) + 4 * kUnit * std::abs(value) + 1e-7;
          if (!(std::abs(y[size_t(r * n + j)] - value) <= bound))
            FAIL(name(isa) << " activation " << int(kind) << " of " << before << ": "
                           << y[size_t(r * n + j)] << ", should be " << value);
        }
    }
}

TEST_CASE("the residual may be the output itself") {
  const int64_t n = 40, k = 64, t = 3;
  const PackedWeights packed(random_weights(DType::q8_0, n, k, 1), Activations::int8);
  const auto x = random_floats(t * k, 2), residual = random_floats(t * n, 3);
  ThreadPool pool(2);
  for (const Isa isa : cpu::usable_isas()) {
    const auto apart =
        product(pool, isa, {{packed.weight()}, {}, residual, Activation::none}, x, t);
    auto out = residual;
    LinearArgs args;
    args.in = {x.data(), DType::f32, {t, k}};
    args.parts[0] = packed.weight();
    args.residual = {out.data(), DType::f32, {t, n}};
    args.out = {out.data(), DType::f32, {t, n}};
    cpu::LinearScratch scratch;
    cpu::linear(pool, isa, args, scratch);
    CHECK(out == apart);
  }
}

TEST_CASE("a value that is not finite spoils its own row and no other") {
  const int64_t n = 33, t = 6, bad = 2;
  ThreadPool pool(2);
  for (const Isa isa : cpu::usable_isas())
    for (const Product what : every_product())
      for (const float value :
           {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
            -std::numeric_limits<float>::infinity()}) {
        const int64_t k = widths(what.format).back();
        const PackedWeights packed(random_weights(what.format, n, k, 8), what.activations);
        auto x = random_floats(t * k, 9);
        const LinearCase c{{packed.weight()}, {}, {}, Activation::none};
        const auto clean = product(pool, isa, c, x, t);
        x[size_t(bad * k + k / 2)] = value;
        const auto y = product(pool, isa, c, x, t);
        for (int64_t i = 0; i < t * n; i++) {
          if (i / n != bad) {
            if (y[size_t(i)] != clean[size_t(i)]) FAIL("another row changed");
          } else if (what.activations == Activations::int8 || std::isnan(value)) {
            if (!std::isnan(y[size_t(i)]))
              FAIL(name(isa) << " " << name(what.format) << " " << value);
          } else if (std::isfinite(y[size_t(i)])) {  // infinity times a weight that is not zero
            FAIL(name(isa) << " " << name(what.format) << " " << value);
          }
        }
      }
}

TEST_CASE("blocks of zeros and of tiny values") {
  const int64_t n = 16, k = 64, t = 2;
  const PackedWeights packed(random_weights(DType::q4_1, n, k, 1), Activations::int8);
  std::vector<float> x(size_t(t * k), 0.0f);
  for (int64_t i = 0; i < k; i++) x[size_t(k + i)] = 1e-38f;
  ThreadPool pool(1);
  for (const Isa isa : cpu::usable_isas())
    for (const float y : product(pool, isa, {{packed.weight()}, {}, {}, Activation::none}, x, t))
      CHECK(std::abs(y) < 1e-30f);
}
