// Products of as few tokens as have kernels of their own on a card, through the operations of every
// device: of int8 codes more exactly than others can be held to.
#include <algorithm>
#include <cmath>

#include "test/ops/linear_expected.hpp"

using namespace hydrant;
using namespace hydrant::test;

namespace {

// So wide that a lane of a warp comes back twice, and not all lanes do.
int64_t long_width(DType format) {
  if (block_elements(format) == 1) return 8 * 70;
  if (block_elements(format) == 256) return 256 * 17;
  return format == DType::q8_0 ? 32 * 35 : 32 * 69;
}

}  // namespace

TEST_CASE("few tokens: each output the same bits whatever their number and the outputs'",
          "[devices]") {
  const int64_t most = 8;
  const auto outputs = [](int64_t t) { return 4 * t + 1; };
  for (const DeviceChoice& choice : device_choices())
    for (const Product what : products_of(choice)) {
      const int64_t n = outputs(most), k = long_width(what.format);
      INFO(choice.backend << " " << choice.options.isa << " " << name(what.format)
                          << " activations " << int(what.activations));
      Bench bench(choice);
      const FileWeights file = random_weights(what.format, n, k, 5);
      const auto x = random_floats(most * k, 6);
      LinearArgs args{};
      args.parts[0] = upload(bench, file, what.activations);
      const auto product = [&](int64_t t) {
        args.parts[0].n = outputs(t);
        args.in = bench.put(std::vector<float>(x.begin(), x.begin() + t * k), {t, k});
        args.out = bench.make(DType::f32, {t, outputs(t)});
        bench.ops().linear(*bench.stream, args);
        return bench.get(args.out);
      };
      const auto all = product(most);
      check_near(all, [&](size_t i) {
        const int64_t output = int64_t(i) % n;
        const float* const token = x.data() + int64_t(i) / n * k;
        return what.activations == Activations::int8
                   ? product_of_codes(file, output, token)
                   : product_of(file, output, token, what.activations);
      });
      for (int64_t t = 1; t < most; t++) {
        INFO("t " << t);
        const auto some = product(t);
        size_t differ = 0;
        for (int64_t i = 0; i < t * outputs(t); i++)
          differ += some[size_t(i)] != all[size_t(i / outputs(t) * n + i % outputs(t))];
        CHECK(differ == 0);
      }
    }
}

TEST_CASE("some tokens: each output the same bits whatever their number and the outputs'",
          "[devices]") {
  const int64_t most = 64, n = 530;  // on the emulated card two panels to a block, one for fewer
  for (const DeviceChoice& choice : device_choices())
    for (const Product what : products_of(choice)) {
      if (what.activations != Activations::int8) continue;
      const int64_t k = block_elements(what.format) == 256 ? 256 * 5 : 32 * 37;
      INFO(choice.backend << " " << choice.options.isa << " " << name(what.format));
      Bench bench(choice);
      const FileWeights file = random_weights(what.format, n, k, 15);
      const auto x = random_floats(most * k, 16);
      LinearArgs args{};
      args.parts[0] = upload(bench, file, what.activations);
      const auto product = [&](int64_t t, int64_t outputs) {
        args.parts[0].n = outputs;
        args.in = bench.put(std::vector<float>(x.begin(), x.begin() + t * k), {t, k});
        args.out = bench.make(DType::f32, {t, outputs});
        bench.ops().linear(*bench.stream, args);
        return bench.get(args.out);
      };
      const auto all = product(most, n);
      check_near(all, [&](size_t i) {
        return product_of_codes(file, int64_t(i) % n, x.data() + int64_t(i) / n * k);
      });
      for (const int64_t t : {9, 16, 17, 32, 33, 63})
        for (const int64_t outputs : {int64_t{21}, int64_t{512}}) {
          INFO("t " << t << " outputs " << outputs);
          const auto some = product(t, outputs);
          size_t differ = 0;
          for (int64_t i = 0; i < t * outputs; i++)
            differ += some[size_t(i)] != all[size_t(i / outputs * n + i % outputs)];
          CHECK(differ == 0);
        }
    }
}

TEST_CASE("few tokens: what is not finite spoils its row and no other, tiny values nothing",
          "[devices]") {
  const int64_t n = 5, t = 3;
  for (const DeviceChoice& choice : device_choices())
    for (const Product what : products_of(choice))
      for (const float value : {NAN, INFINITY, -INFINITY, 1e-38f}) {
        if (what.activations != Activations::int8) continue;
        INFO(choice.backend << " " << choice.options.isa << " " << name(what.format) << " "
                            << value);
        const int64_t k = widths(what.format).back();
        Bench bench(choice);
        LinearArgs args{};
        args.parts[0] = upload(bench, random_weights(what.format, n, k, 8), what.activations);
        auto x = random_floats(t * k, 9);
        std::fill(x.begin() + k, x.begin() + 2 * k, 1e-38f);
        x[size_t(k + k / 2)] = value;
        args.in = bench.put(x, {t, k});
        args.out = bench.make(DType::f32, {t, n});
        bench.ops().linear(*bench.stream, args);
        const auto out = bench.get(args.out);
        size_t sound = 0, spoiled = 0, none = 0;
        for (int64_t i = 0; i < t * n; i++) {
          const float y = out[size_t(i)];
          if (i / n != 1)
            sound += std::isfinite(y) && y != 0;
          else
            spoiled += std::isnan(y), none += std::abs(y) < 1e-30f;
        }
        CHECK(sound == size_t(2 * n));
        CHECK((std::isfinite(value) ? none : spoiled) == size_t(n));
      }
}
