// attend_bench [decode|prompt] [isa] [threads]: how near attention comes to the machine's limits.
//
// decode: time to read keys and values against pure reading of the same bytes, alternating in one
// process, because the bandwidth of a shared machine drifts within minutes; the share is the median
// of neighbouring ratios. Calls go round over more bytes than any cache holds, as layers do.
// prompt: GFLOP/s of the causal triangle, 4 d operations for each (query, key), and the time of the
// column sums beside it.
#include <immintrin.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "runtime/backends/cpu/kernels/attend.hpp"
#include "runtime/backends/cpu/kernels/kv_layout.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/half.hpp"

using namespace hydrant;
using namespace hydrant::cpu;

namespace {

// With one thread its own processor time, which a busy machine disturbs less.
double now(int threads) {
  timespec t{};
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
}
double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

class HugePages {
 public:
  explicit HugePages(size_t bytes) : bytes_((bytes + 2 * kHuge - 1) / kHuge * kHuge) {
    base_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ensure(base_ != MAP_FAILED, "no memory for {} bytes", bytes_);
    madvise(base_, bytes_, MADV_HUGEPAGE);
  }
  ~HugePages() { munmap(base_, bytes_); }
  HugePages(const HugePages&) = delete;
  HugePages& operator=(const HugePages&) = delete;
  std::byte* data() const {
    return reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(base_) + kHuge - 1) &
                                        ~uintptr_t(kHuge - 1));
  }

 private:
  static constexpr size_t kHuge = size_t{2} << 20;
  void* base_;
  size_t bytes_;
};

// Random elements; the layout does not matter, every place is like every other.
void fill(std::byte* at, size_t bytes, DType dtype) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> some(4096);
  for (float& x : some) x = normal(random);
  const size_t element = dtype == DType::f32 ? 4 : 2;
  for (size_t i = 0; i < bytes; i += element) {
    const float x = some[random() >> 20];
    const uint16_t h = dtype == DType::f16 ? f32_to_f16(x) : f32_to_bf16(x);
    std::memcpy(at + i, element == 4 ? static_cast<const void*>(&x) : &h, element);
  }
}

std::atomic<uint64_t> sink;

// Four streams, prefetched: the fastest way found to read and do nothing else.
void read(ThreadPool& pool, const std::byte* data, size_t bytes) {
  pool.run([&](int member) {
    const size_t share = bytes / size_t(pool.size()), quarter = share / 4 / 64 * 64;
    const std::byte* const at = data + size_t(member) * share / 64 * 64;
    __m128i sums[4] = {};
    for (size_t i = 0; i < quarter; i += 64)
      for (size_t j = 0; j < 4; j++) {
        const auto* line = reinterpret_cast<const __m128i*>(at + j * quarter + i);
        _mm_prefetch(reinterpret_cast<const char*>(line) + 1024, _MM_HINT_T0);
        for (int k = 0; k < 4; k++) sums[j] = _mm_xor_si128(sums[j], _mm_load_si128(line + k));
      }
    for (const __m128i s : sums) sink += uint64_t(_mm_cvtsi128_si64(s));
  });
}

struct Decode {
  HeadShape shape;
  int32_t rows, slots;
  DType dtype;
};

void bench_decode(const Decode& c, Isa isa, int threads) {
  const KvLayout layout{c.dtype, c.shape.head_dim};
  const size_t head_bytes = size_t(c.slots / kRunSlots) * layout.run_bytes();
  const size_t bytes = head_bytes * size_t(c.rows * c.shape.kv_heads);
  const size_t layers = std::max<size_t>(2, (size_t{192} << 20) / bytes);
  const HugePages pages(bytes * layers);
  fill(pages.data(), bytes * layers, c.dtype);
  const auto q = std::vector<float>(size_t(c.rows * c.shape.heads * c.shape.head_dim), 0.3f);
  std::vector<float> out(q.size()), lse(size_t(c.rows * c.shape.heads));
  policy::RowPlan plan;
  plan.slots = {0, 0, c.slots - 1};
  const std::vector<policy::RowPlan> plans(size_t(c.rows), plan);
  std::vector<Segment> segments;
  for (int32_t r = 0; r < c.rows; r++) segments.push_back({r, c.slots - 1, 1, r});

  AttendDecodeArgs args;
  args.q = {q.data(), DType::f32, {c.rows, c.shape.heads, c.shape.head_dim}};
  args.shape = c.shape;
  args.segments = segments;
  args.cache.place_bytes = head_bytes * size_t(c.shape.kv_heads);
  args.cache.plans = plans.data();
  args.cache.places = c.rows;
  args.cache.kv_heads = c.shape.kv_heads;
  args.cache.head_dim = c.shape.head_dim;
  args.cache.slots = c.slots;
  args.cache.dtype = c.dtype;
  args.scale = 1 / std::sqrt(float(c.shape.head_dim));
  args.out = {out.data(), DType::f32, args.q.shape};
  args.lse = {lse.data(), DType::f32, {c.rows, c.shape.heads}};

  ThreadPool pool(threads);
  AttendScratch scratch;
  std::vector<double> shares, times, reads;
  for (int repeat = 0; repeat < 15; repeat++) {
    const double start = now(threads);
    for (size_t l = 0; l < layers; l++) read(pool, pages.data() + l * bytes, bytes);
    const double middle = now(threads);
    for (size_t l = 0; l < layers; l++) {
      args.cache.kv = {pages.data() + l * bytes, head_bytes, layout.run_bytes()};
      attend_decode(pool, isa, args, scratch);
    }
    const double end = now(threads);
    reads.push_back((middle - start) / double(layers));
    times.push_back((end - middle) / double(layers));
    shares.push_back(reads.back() / times.back());
  }
  fmt::print(
      "decode {} {} threads {} d {} heads {}/{} rows {} slots {}: {:.1f} us {:.1f} GB/s, {:.0f} % "
      "of reading\n",
      name(isa), name(c.dtype), threads, c.shape.head_dim, c.shape.heads, c.shape.kv_heads, c.rows,
      c.slots, median(times) * 1e6, double(bytes) / median(times) / 1e9, 100 * median(shares));
}

void bench_prompt(const HeadShape& shape, int32_t n, DType dtype, Isa isa, int threads) {
  const KvLayout layout{dtype, shape.head_dim};
  const size_t head_bytes = size_t((n + 15) / 16) * layout.run_bytes();
  const HugePages pages(head_bytes * size_t(shape.kv_heads));
  fill(pages.data(), head_bytes * size_t(shape.kv_heads), dtype);
  std::vector<float> q(size_t(n * shape.heads * shape.head_dim));
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  for (float& x : q) x = normal(random);
  std::vector<float> out(q.size()), lse(size_t(n * shape.heads));
  std::vector<float> sum(size_t(n * shape.kv_heads)), last(sum.size());
  PromptSegment p;
  p.segment = {0, 0, n, 0};
  p.kv = {pages.data(), head_bytes, layout.run_bytes()};
  p.sum = sum.data();
  p.last = last.data();
  p.length = p.stats_stride = n;
  const PromptSegment segments[] = {p};
  const Shape vectors{n, shape.heads, shape.head_dim}, numbers{n, shape.heads};
  AttendPromptArgs args{{q.data(), DType::f32, vectors},
                        shape,
                        segments,
                        dtype,
                        1 / std::sqrt(float(shape.head_dim)),
                        {out.data(), DType::f32, vectors},
                        {lse.data(), DType::f32, numbers}};
  ThreadPool pool(threads);
  AttendScratch scratch;
  std::vector<double> attend, summarize;
  for (int repeat = 0; repeat < 7; repeat++) {
    const double start = now(threads);
    attend_prompt(pool, isa, args, scratch);
    const double middle = now(threads);
    summarize_prompt(pool, isa, {args.q, args.lse, shape, segments, dtype, args.scale}, scratch);
    summarize.push_back(now(threads) - middle);
    attend.push_back(middle - start);
  }
  const double flops = 2.0 * shape.head_dim * shape.heads * double(n) * (n + 1);
  const auto best = [](const std::vector<double>& v) {
    return *std::min_element(v.begin(), v.end());
  };
  fmt::print(
      "prompt {} {} threads {} d {} heads {}/{} tokens {}: {:.2f} ms {:.0f} GFLOP/s (best {:.0f}); "
      "column sums {:.2f} ms (best {:.2f})\n",
      name(isa), name(dtype), threads, shape.head_dim, shape.heads, shape.kv_heads, n,
      median(attend) * 1e3, flops / median(attend) / 1e9, flops / best(attend) / 1e9,
      median(summarize) * 1e3, best(summarize) * 1e3);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const Isa isa = choose_isa(argc > 2 ? argv[2] : "");
  const int threads = argc > 3 ? std::atoi(argv[3]) : usable_cores();
  if (what != "prompt") {
    const Decode cases[] = {
        {{3, 3, 64}, 8, 2048, DType::bf16},   {{9, 3, 64}, 8, 2048, DType::bf16},
        {{12, 3, 64}, 8, 2048, DType::bf16},  {{4, 4, 128}, 4, 2048, DType::bf16},
        {{16, 4, 128}, 4, 2048, DType::bf16}, {{32, 4, 128}, 4, 2048, DType::bf16},
        {{9, 3, 64}, 1, 512, DType::bf16},    {{9, 3, 64}, 1, 224, DType::bf16},
        {{9, 3, 64}, 1, 8064, DType::bf16},   {{9, 3, 64}, 32, 224, DType::bf16},
        {{9, 3, 64}, 8, 2048, DType::f16},    {{9, 3, 64}, 8, 2048, DType::f32},
        {{12, 12, 80}, 1, 512, DType::bf16}};
    for (const Decode& c : cases) bench_decode(c, isa, threads);
  }
  if (what != "decode")
    for (const int32_t n : {512, 2048})
      for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
        bench_prompt({9, 3, 64}, n, dtype, isa, threads);
        if (dtype == DType::bf16) bench_prompt({16, 4, 128}, n, dtype, isa, threads);
      }
}
