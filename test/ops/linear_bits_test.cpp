// A row's bits depend on nothing but the row and its weights.
#include <catch2/catch.hpp>
#include <cstring>
#include <map>

#include "runtime/backends/cpu/kernels/linear.hpp"
#include "test/ops/linear_case.hpp"

using namespace hydrant;
using namespace hydrant::test;
using cpu::Isa;
using cpu::ThreadPool;

namespace {

bool same_bits(const float* a, const float* b, int64_t count) {
  return memcmp(a, b, size_t(count) * sizeof(float)) == 0;
}

// Each row by itself, each weight by itself: the reference of every other way.
std::vector<float> alone(Isa isa, const LinearCase& c, const std::vector<float>& x, int64_t t) {
  ThreadPool pool(1);
  int64_t n = 0;
  for (const Weight& w : c.parts) n += w.n;
  const int64_t k = c.parts[0].k;
  std::vector<float> all(size_t(t * n));
  for (int64_t r = 0; r < t; r++) {
    int64_t column = 0;
    for (const Weight& w : c.parts) {
      const auto y = product(pool, isa, {{w}, {}, {}, Activation::none},
                             std::span(x).subspan(size_t(r * k), size_t(k)), 1);
      memcpy(&all[size_t(r * n + column)], y.data(), y.size() * sizeof(float));
      column += w.n;
    }
  }
  return all;
}

}  // namespace

TEST_CASE("a row has the same bits in every batch, place, split of parts and number of threads") {
  const int64_t rows = 40, k = 256;
  const auto x = random_floats(rows * k, 1);
  ThreadPool one(1), two(2), three(3);
  for (const Product what : every_product()) {
    const PackedWeights a(random_weights(what.format, 49, k, 2), what.activations);
    const PackedWeights b(random_weights(what.format, 80, k, 3), what.activations);
    const PackedWeights d(random_weights(what.format, 16, k, 4), what.activations);
    const LinearCase c{{a.weight(), b.weight(), d.weight()}, {}, {}, Activation::none};
    const int64_t n = 49 + 80 + 16;
    const auto anywhere = alone(cpu::usable_isas().front(), c, x, rows);
    for (const Isa isa : cpu::usable_isas()) {
      const auto reference = alone(isa, c, x, rows);
      INFO(name(isa) << " " << name(what.format) << " activations " << int(what.activations));
      REQUIRE(same_bits(reference.data(), anywhere.data(), rows * n));
      for (ThreadPool* pool : {&one, &two, &three})
        for (const int64_t t : {1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 16, 17, 24, 25, 35})
          for (const int64_t first : {0, 1, 5}) {
            const auto y = product(*pool, isa, c, std::span(x).subspan(size_t(first * k)), t);
            if (!same_bits(y.data(), &reference[size_t(first * n)], t * n))
              FAIL(name(isa) << " " << name(what.format) << " activations " << int(what.activations)
                             << " t " << t << " first " << first << " threads " << pool->size());
          }
    }
  }
}

TEST_CASE("many rows have the same bits whoever multiplies them") {
  const int64_t t = 200, k = 256;
  const auto x = random_floats(t * k, 1);
  ThreadPool one(1), two(2), three(3);
  for (const Product what : every_product()) {
    const PackedWeights a(random_weights(what.format, 401, k, 2), what.activations);
    const PackedWeights b(random_weights(what.format, 24, k, 3), what.activations);
    const LinearCase c{{a.weight(), b.weight()}, {}, {}, Activation::none};
    for (const Isa isa : cpu::usable_isas()) {
      const auto reference = product(one, isa, c, x, t);
      for (ThreadPool* pool : {&two, &three})
        for (int round = 0; round < 3; round++) {
          INFO(name(isa) << " " << name(what.format) << " threads " << pool->size());
          REQUIRE(same_bits(product(*pool, isa, c, x, t).data(), reference.data(), t * 425));
        }
    }
  }
}

TEST_CASE("parts of different formats and activations stand side by side") {
  const int64_t rows = 40, k = 512;
  const auto x = random_floats(rows * k, 5);
  const PackedWeights a(random_weights(DType::q4_k, 64, k, 1), Activations::int8);
  const PackedWeights b(random_weights(DType::q6_k, 33, k, 2), Activations::int8);
  const PackedWeights d(random_weights(DType::bf16, 17, k, 3), Activations::bf16);
  const PackedWeights e(random_weights(DType::f16, 48, k, 4), Activations::f32);
  ThreadPool one(1), three(3);
  for (const auto& parts :
       {std::vector{a.weight(), b.weight(), d.weight()},
        std::vector{a.weight(), d.weight(), e.weight(), b.weight()},
        std::vector{d.weight(), e.weight(), b.weight()}, std::vector{e.weight(), a.weight()}}) {
    const LinearCase c{parts, {}, {}, Activation::none};
    for (const Isa isa : cpu::usable_isas()) {
      const auto reference = alone(isa, c, x, rows);
      for (ThreadPool* pool : {&one, &three})
        for (const int64_t t : {1, 3, 40}) {
          const auto y = product(*pool, isa, c, x, t);
          CHECK(same_bits(y.data(), reference.data(), int64_t(y.size())));
        }
    }
  }
}

TEST_CASE("every path gives the bits of the generic one") {
  // bf16 pairs are left out where the processor's own instruction may round in another way
  const bool zen = __builtin_cpu_is("amd");
  const int64_t n = 100, k = 512;
  ThreadPool pool(2);
  for (const int64_t t : {7, 29}) {  // without and with full tiles
    const auto x = random_floats(t * k, 6);
    for (const Product what : every_product()) {
      const PackedWeights packed(random_weights(what.format, n, k, 7), what.activations);
      const LinearCase c{{packed.weight()}, {}, {}, Activation::none};
      const auto reference = product(pool, Isa::generic, c, x, t);
      for (const Isa isa : cpu::usable_isas()) {
        if (what.activations == Activations::bf16 && isa >= Isa::avx512_bf16 && !zen) continue;
        const auto y = product(pool, isa, c, x, t);
        INFO(name(isa) << " " << name(what.format) << " activations " << int(what.activations));
        CHECK(same_bits(y.data(), reference.data(), t * n));
      }
    }
  }
}

TEST_CASE("the workspace is what was predicted, and stays") {
  const int64_t k = 512;
  const PackedWeights q(random_weights(DType::q4_0, 64, k, 1), Activations::int8);
  const PackedWeights b(random_weights(DType::bf16, 64, k, 1), Activations::bf16);
  const PackedWeights f(random_weights(DType::q8_0, 64, k, 1), Activations::f32);
  std::vector<float> out(size_t(100 * 64));
  for (const int threads : {1, 3})
    for (const Isa isa : cpu::usable_isas())
      for (const Weight& w : {q.weight(), b.weight(), f.weight()}) {
        ThreadPool pool(threads);
        cpu::LinearScratch scratch;
        size_t most = 0;
        for (const int64_t t : {1, 12, 100, 5}) {
          const auto x = random_floats(t * k, 2);
          LinearArgs args;
          args.in = {x.data(), DType::f32, {t, k}};
          args.parts[0] = w;
          args.out = {out.data(), DType::f32, {t, 64}};
          cpu::linear(pool, isa, args, scratch);
          most = std::max(most, cpu::linear_scratch_bytes(isa, threads, t, k, w.activations));
          CHECK(scratch.bytes() == most);
        }
      }
}
