// What products read and write beside the least that they can do with.
#include <utility>

#include "runtime/backends/cuda/cuda_stream.hpp"
#include "runtime/base/aligned.hpp"
#include "test/cuda/traffic/counted.hpp"

using namespace hydrant;
using namespace hydrant::test;

namespace {

LinearArgs product_on(Bench& bench, const FileWeights& file, const Product& what, int64_t t) {
  LinearArgs args{};
  args.in = bench.put(random_floats(t * file.k, 2), {t, file.k});
  args.parts[0] = upload(bench, file, what.activations);
  args.out = bench.make(DType::f32, {t, file.n});
  return args;
}

}  // namespace

TEST_CASE("a product for few tokens reads the weights once") {
  for (const Product what : every_card_product())
    for (const int64_t t : {1, 4, 8}) {
      const int64_t n = 40, k = 512;
      INFO(name(what.format) << " activations " << int(what.activations) << " t " << t);
      Bench bench(kDevice);
      const FileWeights file = random_weights(what.format, n, k, 1);
      const LinearArgs args = product_on(bench, file, what, t);
      Meter meter;
      const Traffic& weights = meter.of(args.parts[0].panels, 3 * args.parts[0].panel_bytes);
      const Traffic &in = meter.of(args.in), &out = meter.of(args.out);
      bench.ops().linear(*bench.stream, args);
      bench.stream->synchronize();
      CHECK(weights.read.moved == file.bytes.size());
      if (block_elements(what.format) == 1) CHECK(weights.read.asked == file.bytes.size());
      check_once(out.written, bytes_of(args.out));
      // What is to be rounded is so once (to f16 it is asked for by the maximum before); else each
      // block takes it, for 8 outputs or, of several tokens, for 16.
      if (what.activations == Activations::f32)
        CHECK(in.read.moved == size_t(ceil_div(n, int64_t{t == 1 ? 8 : 16})) * bytes_of(args.in));
      else if (what.activations == Activations::f16)
        CHECK(in.read.moved == bytes_of(args.in));
      else
        check_once(in.read, bytes_of(args.in));
    }
}

TEST_CASE("a product for some tokens as int8 codes reads the weights once") {
  for (const Product what : every_card_product()) {
    if (what.activations != Activations::int8) continue;
    // One panel to a block, but two where the emulated card's four multiprocessors have enough.
    for (const auto& [t, n] : {std::pair<int64_t, int64_t>{9, 40}, {17, 40}, {64, 40}, {64, 520}}) {
      const int64_t k = 512, panels = ceil_div(n, int64_t{kPanelRows});
      INFO(name(what.format) << " t " << t << " n " << n);
      Bench bench(kDevice);
      const FileWeights file = random_weights(what.format, n, k, 1);
      const LinearArgs args = product_on(bench, file, what, t);
      Meter meter;
      const Traffic& weights =
          meter.of(args.parts[0].panels, size_t(panels) * args.parts[0].panel_bytes);
      const Traffic &in = meter.of(args.in), &out = meter.of(args.out);
      const size_t codes = size_t(align_up(t, int64_t{8}) * k), scales = codes / 32 * sizeof(float);
      auto& stream = static_cast<cuda::CudaStream&>(*bench.stream);
      auto* const scratch = static_cast<std::byte*>(stream.scratch(size_t{1} << 20));
      const Traffic& tokens = meter.of(scratch, codes + 2 * scales);
      bench.ops().linear(*bench.stream, args);
      bench.stream->synchronize();
      // Whole panels, of which rows past the last are zeros.
      CHECK(weights.read.moved == file.bytes.size() / size_t(n) * size_t(panels * kPanelRows));
      check_once(in.read, bytes_of(args.in));
      check_once(out.written, bytes_of(args.out));
      check_once(tokens.written, codes + 2 * scales);
      const bool offset = what.format == DType::q4_1 || what.format == DType::q4_k;
      const auto blocks = size_t(n == 40 ? panels : ceil_div(panels, int64_t{2}));
      CHECK(tokens.read.moved == blocks * (codes + (offset ? 2 : 1) * scales));
    }
  }
}

// cuBLAS stands between, whose traffic is its own: what is not taken in place is.
TEST_CASE("a product for many tokens unpacks weights once and rounds its input once") {
  for (const Product what : every_product()) {
    if (what.activations != Activations::int8) continue;
    const int64_t n = 40, k = 512, t = 65;
    INFO(name(what.format));
    Bench bench(kDevice);
    const FileWeights file = random_weights(what.format, n, k, 1);
    const LinearArgs args = product_on(bench, file, what, t);
    Meter meter;
    const Traffic& weights = meter.of(args.parts[0].panels, 3 * args.parts[0].panel_bytes);
    const Traffic &in = meter.of(args.in), &out = meter.of(args.out);
    bench.ops().linear(*bench.stream, args);
    bench.stream->synchronize();
    CHECK(weights.read.moved == file.bytes.size());
    CHECK(in.read.moved == bytes_of(args.in));  // asked for by the maximum, then to be rounded
    check_once(out.written, bytes_of(args.out));
  }
}
