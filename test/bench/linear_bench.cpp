// linear_bench [--isa NAME] [--threads N] [--format F] [--activations f32|bf16|int8] [--shape NAME]
// [T ...]
//
// Whole calls of linear(), packing of x included, over weights that rotate through more copies than
// the caches hold. The bandwidth of small machines wanders by a third within minutes, so pure
// reading of the same memory alternates with the product, and the share is the median of the ratios
// of neighbours. GFLOP/s are compared with what one core of Zen 4 can issue at the clock measured.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/backends/cpu/kernels/intrinsics.hpp"
#include "runtime/backends/cpu/kernels/linear.hpp"
#include "runtime/base/aligned.hpp"
#include "runtime/device/host_memory.hpp"
#include "test/ops/linear_case.hpp"

using namespace hydrant;
using namespace hydrant::cpu;

namespace {

struct Layer {
  std::string name;
  int64_t k;
  std::vector<int64_t> n;
};
const std::vector<Layer> kLayers{
    {"qkv", 576, {576, 192, 192}}, {"out", 576, {576}},    {"gate_up", 576, {1536, 1536}},
    {"down", 1536, {576}},         {"head", 576, {49152}}, {"4096", 4096, {4096}},
};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

// A chain of additions takes one cycle each.
double clock_ghz() {
  double best = 0;
  for (int round = 0; round < 20; round++) {
    uint64_t x = 1;
    const double start = now();
    for (int i = 0; i < 1000000; i++) asm volatile("add $1, %0" : "+r"(x));
    best = std::max(best, 1e-3 / (now() - start));
  }
  return best;
}
double flop_per_cycle(Isa isa, Activations activations) {
  const double wide = isa >= Isa::avx512 ? 2 : 1;  // what 512-bit instructions double
  switch (activations) {
    case Activations::f32:
      return 32;
    case Activations::bf16:
      return isa >= Isa::avx512_bf16 ? 64 : 32;
    case Activations::int8:
      return 64 * wide;
    case Activations::f16:
      break;  // cards only
  }
  return 0;
}

// Weights of one shape in `copies` places, so that no copy is in a cache when its turn comes.
class Copies {
 public:
  Copies(const Layer& shape, DType format, Activations activations) {
    std::vector<test::PackedWeights> panels;
    size_t bytes = 0;
    for (const int64_t n : shape.n) {
      panels.emplace_back(test::random_weights(format, 16, shape.k, 1), activations);
      bytes += panels[0].weight().panel_bytes * size_t(ceil_div(n, kPanelRows));
    }
    bytes_ = bytes;
    copies_ = std::max<size_t>(2, (size_t{192} << 20) / bytes);
    memory_ = memory_source_.allocate(Memory::device, bytes * copies_, "weights");
    auto* at = static_cast<std::byte*>(memory_.data());
    const Weight& one = panels[0].weight();
    for (size_t c = 0; c < copies_; c++) {
      std::vector<Weight> parts;
      for (const int64_t n : shape.n) {
        parts.push_back({at, format, activations, n, shape.k, one.panel_bytes});
        for (int64_t p = 0; p < ceil_div(n, kPanelRows); p++, at += one.panel_bytes)
          memcpy(at, one.panels, one.panel_bytes);
      }
      weights_.push_back(parts);
    }
  }
  size_t count() const { return copies_; }
  size_t bytes() const { return bytes_; }  // of one copy
  const std::vector<Weight>& operator[](size_t c) const { return weights_[c]; }
  const std::byte* start(size_t c) const {
    return static_cast<const std::byte*>(memory_.data()) + c * bytes_;
  }

 private:
  HostMemory memory_source_;
  Buffer memory_;
  size_t bytes_ = 0, copies_ = 0;
  std::vector<std::vector<Weight>> weights_;
};

// The yardstick: four streams with nothing to compute.
__attribute__((target("avx2"))) uint64_t read_all(const std::byte* p, size_t bytes) {
  __m256i sum[4] = {};
  const size_t quarter = bytes / 4 / 64 * 64;
  for (size_t i = 0; i < quarter; i += 64)
    for (size_t j = 0; j < 4; j++) {
      const auto* q = reinterpret_cast<const __m256i*>(p + j * quarter + i);
      sum[j] = _mm256_xor_si256(sum[j],
                                _mm256_xor_si256(_mm256_loadu_si256(q), _mm256_loadu_si256(q + 1)));
    }
  const __m256i all =
      _mm256_xor_si256(_mm256_xor_si256(sum[0], sum[1]), _mm256_xor_si256(sum[2], sum[3]));
  return uint64_t(_mm256_extract_epi64(all, 0));
}
std::atomic<uint64_t> sink;
void read_copy(ThreadPool& pool, const Copies& copies, size_t c) {
  pool.run([&](int member) {
    const size_t share = copies.bytes() / size_t(pool.size()) / 64 * 64;
    sink ^= read_all(copies.start(c) + size_t(member) * share, share);
  });
}

struct Setup {
  Isa isa;
  int threads;
  double peak;  // GFLOP/s of all threads
};

void measure(const Setup& setup, ThreadPool& pool, const Layer& shape, const Copies& copies,
             int64_t t) {
  const auto x = test::random_floats(t * shape.k, 1);
  int64_t n = 0;
  for (const int64_t part : shape.n) n += part;
  std::vector<float> out(size_t(t * n));
  LinearScratch scratch;
  const auto call = [&](size_t c) {
    LinearArgs args;
    args.in = {x.data(), DType::f32, {t, shape.k}};
    for (size_t p = 0; p < shape.n.size(); p++) args.parts[p] = copies[c][p];
    args.out = {out.data(), DType::f32, {t, n}};
    linear(pool, setup.isa, args, scratch);
  };
  const double flop = 2.0 * double(t) * double(shape.k) * double(n);
  const auto per_round = std::clamp<size_t>(size_t(1 + 4e9 / flop), 1, copies.count());
  double best = 1e9, best_read = 1e9;
  std::vector<double> shares;
  call(0);
  for (int round = 0; round < 9; round++) {
    double start = now();
    for (size_t c = 0; c < per_round; c++) read_copy(pool, copies, c);
    const double read = (now() - start) / double(per_round);
    start = now();
    for (size_t c = 0; c < per_round; c++) call(c);
    const double took = (now() - start) / double(per_round);
    best = std::min(best, took);
    best_read = std::min(best_read, read);
    shares.push_back(read / took);
  }
  const double gb = double(copies.bytes()) / 1e9, gf = flop / best / 1e9;
  fmt::print(
      "{:8} t={:<4} {:9.1f} us  {:5.1f} of {:5.1f} GB/s ({:3.0f} %)  {:6.1f} GF ({:3.0f} %)\n",
      shape.name, t, best * 1e6, gb / best, gb / best_read, 100 * median(shares), gf,
      100 * gf / setup.peak);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::string isa_name, format_name, activations_name, shape_name;
  int threads = usable_cores();
  std::vector<int64_t> rows;
  for (int i = 1; i < argc; i++) {
    const std::string a = argv[i];
    const auto value = [&] { return std::string(i + 1 < argc ? argv[++i] : ""); };
    if (a == "--isa")
      isa_name = value();
    else if (a == "--threads")
      threads = std::atoi(value().c_str());
    else if (a == "--format")
      format_name = value();
    else if (a == "--activations")
      activations_name = value();
    else if (a == "--shape")
      shape_name = value();
    else
      rows.push_back(std::atoll(a.c_str()));
  }
  if (rows.empty()) rows = {1, 4, 16, 32, 512};
  const Isa isa = choose_isa(isa_name);
  const double ghz = clock_ghz();
  ThreadPool pool(threads);
  for (const test::Product what : test::every_product()) {
    const std::string kind = std::array{"f32", "bf16", "int8"}[size_t(what.activations)];
    if (!format_name.empty() && name(what.format) != format_name) continue;
    if (!activations_name.empty() && kind != activations_name) continue;
    fmt::print("{} {} weights, {} activations, {} threads, {:.2f} GHz\n", name(isa),
               name(what.format), kind, threads, ghz);
    for (const Layer& shape : kLayers) {
      if (!shape_name.empty() && shape.name != shape_name) continue;
      if (shape.k % block_elements(what.format) != 0) continue;
      const Copies copies(shape, what.format, what.activations);
      for (const int64_t t : rows)
        measure({isa, threads, ghz * flop_per_cycle(isa, what.activations) * threads}, pool, shape,
                copies, t);
    }
  }
}
