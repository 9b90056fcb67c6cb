// Products through the operations of every device, against double precision.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/base/error.hpp"
#include "runtime/base/half.hpp"
#include "test/ops/linear_expected.hpp"

using namespace hydrant;
using namespace hydrant::test;

TEST_CASE("products of every format and kind of activations equal double precision", "[devices]") {
  for (const DeviceChoice& choice : device_choices())
    for (const Product what : products_of(choice))
      for (const int64_t k : widths(what.format))
        for (const int64_t t : {1, 3, 8, 9, 21, 33, 64, 65}) {
          const int64_t n = t == 3 || t == 33 ? 49 : 16;
          INFO(choice.backend << " " << choice.options.isa << " " << name(what.format)
                              << " activations " << int(what.activations) << " k " << k << " t "
                              << t);
          Bench bench(choice);
          const FileWeights file = random_weights(what.format, n, k, uint32_t(n * 7 + k));
          const auto x = random_floats(t * k, uint32_t(t));
          LinearArgs args{};
          args.in = bench.put(x, {t, k});
          args.parts[0] = upload(bench, file, what.activations);
          args.out = bench.make(DType::f32, {t, n});
          bench.ops().linear(*bench.stream, args);
          check_near(bench.get(args.out), [&](size_t i) {
            return product_of(file, int64_t(i) % n, x.data() + int64_t(i) / n * k, what.activations,
                              on_tensor_cores(bench, t, what.activations));
          });
        }
}

TEST_CASE("parts stand side by side, then bias, activation and residual, in place too",
          "[devices]") {
  const int64_t k = 96;
  for (const DeviceChoice& choice : device_choices())
    for (const int64_t t : {2, 12}) {
      Bench bench(choice);
      const FileWeights files[] = {random_weights(DType::bf16, 33, k, 1),
                                   random_weights(DType::q8_0, 16, k, 2),
                                   random_weights(DType::f32, 5, k, 3)};
      const Activations kinds[] = {Activations::bf16, Activations::int8, Activations::f32};
      const int64_t n = 54;
      const auto x = random_floats(t * k, 4), bias = random_floats(n, 5),
                 residual = random_floats(t * n, 6);
      LinearArgs args{};
      args.in = bench.put(x, {t, k});
      for (size_t p = 0; p < 3; p++) args.parts[p] = upload(bench, files[p], kinds[p]);
      args.bias = bench.put(bias, {n});
      args.out = bench.put(residual, {t, n});
      args.residual = args.out;
      args.after = Activation::relu;
      bench.ops().linear(*bench.stream, args);
      INFO(choice.backend << " " << choice.options.isa << " t " << t);
      check_near(bench.get(args.out), [&](size_t i) {
        const auto token = int64_t(i) / n, output = int64_t(i) % n;
        const size_t part = output < 33 ? 0 : output < 49 ? 1 : 2;
        const int64_t first[] = {0, 33, 49};
        Expected e = product_of(files[part], output - first[part], x.data() + token * k,
                                kinds[part], on_tensor_cores(bench, t, kinds[part]));
        e.value = std::max(e.value + double(bias[size_t(output)]), 0.0) + double(residual[i]);
        e.tolerance += 3 * kRound * (std::abs(e.value) + std::abs(double(residual[i])));
        return e;
      });
    }
}

TEST_CASE("many tokens: rows of any magnitude, and some of magnitudes far apart", "[devices]") {
  const int64_t n = 20;
  for (const DeviceChoice& choice : device_choices())
    for (const Product what : products_of(choice))
      for (const int64_t t : {12, 66}) {
        const int64_t k = widths(what.format).back();
        INFO(choice.backend << " " << choice.options.isa << " " << name(what.format)
                            << " activations " << int(what.activations) << " t " << t);
        Bench bench(choice);
        const FileWeights file = random_weights(what.format, n, k, 11);
        auto x = random_floats(t * k, 12);
        const float sizes[] = {1, 1e-25f, 1e35f, 0, 7e4f, 3e-6f};
        for (int64_t i = 0; i < t * k; i++) {
          float& value = x[size_t(i)];
          value *= sizes[i / k % 6];
          if (i / k >= 6 && i % k == 5) value *= 1000;
          if (i / k >= 6 && i % 3 == 0) value *= 1e-7f;
        }
        LinearArgs args{};
        args.in = bench.put(x, {t, k});
        args.parts[0] = upload(bench, file, what.activations);
        args.out = bench.make(DType::f32, {t, n});
        bench.ops().linear(*bench.stream, args);
        check_near(bench.get(args.out), [&](size_t i) {
          return product_of(file, int64_t(i) % n, x.data() + int64_t(i) / n * k, what.activations,
                            on_tensor_cores(bench, t, what.activations));
        });
      }
}

TEST_CASE("many tokens: what is not finite spoils its row and no other", "[devices]") {
  const int64_t n = 5;
  for (const DeviceChoice& choice : device_choices())
    for (const Product what : products_of(choice))
      for (const float value : {NAN, INFINITY, -INFINITY}) {
        const int64_t t = value > 0 ? 11 : 67;
        INFO(choice.backend << " " << choice.options.isa << " " << name(what.format)
                            << " activations " << int(what.activations) << " " << value << " t "
                            << t);
        const int64_t k = widths(what.format).back();
        Bench bench(choice);
        LinearArgs args{};
        args.parts[0] = upload(bench, random_weights(what.format, n, k, 8), what.activations);
        auto x = random_floats(t * k, 9);
        x[size_t(k + k / 2)] = value;
        args.in = bench.put(x, {t, k});
        args.out = bench.make(DType::f32, {t, n});
        bench.ops().linear(*bench.stream, args);
        const auto out = bench.get(args.out);
        size_t sound = 0, spoiled = 0;
        for (int64_t i = 0; i < t * n; i++)
          (i / n == 1 ? spoiled : sound) += std::isfinite(out[size_t(i)]) == (i / n != 1);
        CHECK(sound == size_t((t - 1) * n));
        CHECK(spoiled == size_t(n));
      }
}

TEST_CASE("many tokens on a card: a weight that f16 cannot hold spoils its output and no other",
          "[devices]") {
  const int64_t n = 20, k = 64, t = kSome + 1;
  for (const DeviceChoice& choice : device_choices()) {
    Bench bench(choice);
    if (bench.is_cpu()) continue;
    FileWeights file = random_weights(DType::q8_0, n, k, 3);
    std::byte* const block = file.bytes.data() + 3 * row_bytes(DType::q8_0, k);
    const uint16_t scale = f32_to_f16(1000);
    std::memcpy(block, &scale, sizeof scale);
    block[2] = std::byte{100};
    for (const Activations activations : {Activations::int8, Activations::f32}) {
      LinearArgs args{};
      args.in = bench.put(random_floats(t * k, 4), {t, k});
      args.parts[0] = upload(bench, file, activations);
      args.out = bench.make(DType::f32, {t, n});
      bench.ops().linear(*bench.stream, args);
      const auto out = bench.get(args.out);
      size_t spoiled = 0;
      for (int64_t i = 0; i < t * n; i++)
        spoiled += std::isfinite(out[size_t(i)]) == (i % n == 3 && activations != Activations::f32);
      INFO(int(activations));
      CHECK(spoiled == 0);
    }
  }
}

TEST_CASE("a processor refuses to round inputs to f16", "[devices]") {
  for (const DeviceChoice& choice : device_choices()) {
    Bench bench(choice);
    LinearArgs args{};
    args.in = bench.put(random_floats(16, 1), {1, 16});
    args.parts[0] = upload(bench, random_weights(DType::f16, 16, 16, 2), Activations::f16);
    args.out = bench.make(DType::f32, {1, 16});
    if (bench.is_cpu())
      CHECK_THROWS_AS(bench.ops().linear(*bench.stream, args), Error);
    else
      CHECK_NOTHROW(bench.ops().linear(*bench.stream, args));
    CHECK(bench.ops().activations(DType::f16) ==
          (bench.is_cpu() ? Activations::f32 : Activations::f16));
  }
}

TEST_CASE("many tokens: more weights and more sums than a card's tiles hold", "[devices]") {
  struct Size {
    Product what;
    int64_t n, k, t;
  };
  for (const DeviceChoice& choice : device_choices())
    for (const Size& size : {Size{{DType::q8_0, Activations::int8}, 33, int64_t{1} << 18, 65},
                             Size{{DType::bf16, Activations::bf16}, 2050, 3, 2050}}) {
      INFO(choice.backend << " " << choice.options.isa << " " << name(size.what.format));
      Bench bench(choice);
      if (bench.is_cpu()) continue;
      const auto [what, n, k, t] = size;
      const FileWeights file = random_weights(what.format, n, k, 14);
      const auto x = random_floats(t * k, 15);
      LinearArgs args{};
      args.in = bench.put(x, {t, k});
      args.parts[0] = upload(bench, file, what.activations);
      args.out = bench.make(DType::f32, {t, n});
      bench.ops().linear(*bench.stream, args);
      check_near(bench.get(args.out), [&, n = n, k = k, a = what.activations](size_t i) {
        return product_of(file, int64_t(i) % n, x.data() + int64_t(i) / n * k, a, true);
      });
    }
}

TEST_CASE("rows of embedding tables of every format", "[devices]") {
  for (const DeviceChoice& choice : device_choices())
    for (const Product what : products_of(choice)) {
      const int64_t k = widths(what.format).back(), n = 40;
      INFO(choice.backend << " " << choice.options.isa << " " << name(what.format));
      Bench bench(choice);
      const FileWeights file = random_weights(what.format, n, k, 9);
      const std::vector<int32_t> ids{39, 0, 16, 16, 7};
      EmbedArgs args;
      args.indices = bench.put(ids, {5});
      args.table = upload(bench, file, what.activations);
      args.out = bench.put(random_floats(5 * k, 1), {5, k});
      const auto before = bench.get(args.out);
      for (const bool accumulate : {true, false}) {
        args.accumulate = accumulate;
        bench.ops().embed(*bench.stream, args);
        check_near(bench.get(args.out), [&](size_t i) -> Expected {
          const size_t at = i / size_t(k);
          const double value = file.values[size_t(ids[at]) * size_t(k) + i % size_t(k)] +
                               (accumulate ? double(before[i]) : 0.0);
          // a code times its scale, a minimum, a sum
          return {value, 4 * kRound * (std::abs(value) + std::abs(double(before[i])) + 0.1)};
        });
      }
      args.offset = 30;  // rows 69 and so on belong to another run of the table
      args.partial = true;
      const auto kept = bench.get(args.out);
      bench.ops().embed(*bench.stream, args);
      const auto partly = bench.get(args.out);
      CHECK(std::equal(partly.begin(), partly.begin() + k, kept.begin()));
      CHECK_FALSE(std::equal(partly.begin() + k, partly.begin() + 2 * k, kept.begin() + k));
      args.partial = false;
      bench.ops().embed(*bench.stream, args);
      CHECK_THROWS_AS(bench.stream->synchronize(), Error);
    }
}
