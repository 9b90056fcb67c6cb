// Register tiles that attention is made of: logits of a few query rows with panels of keys, softmax
// weights, and weighted sums of values. The including file defines kSums.
namespace {

// How a format's elements are multiplied: `Left` is a broadcast element of a query or a weight,
// `Right` 16 slots (keys) or 16 components (values); a step is `together` products of the sum.
template <DType type>
struct Side {
  using Left = float;
  using Right = Lanes;
  static constexpr int together = 1, bytes = type == DType::f32 ? 64 : 32;
  static Right load_right(const void* p) { return load_as<type>(p); }
  static Lanes step(Lanes sum, const Right& w, const Lanes& x) { return fma(w, x, sum); }
  static void store_left(Left* to, Lanes a) { store(to, a); }
};
template <>
struct Side<DType::bf16> {
  using Left = Pair;
  using Right = Pairs;
  static constexpr int together = 2, bytes = 64;
  static Right load_right(const void* p) { return load_pairs(p); }
  static Lanes step(Lanes sum, const Right& w, const Pairs& x) { return dot(sum, w, x); }
  static void store_left(Left* to, Lanes a) { store_pairs(to, a); }
};
template <DType type>
using Left = typename Side<type>::Left;

// f(integral_constant) with the constant equal to n, 1 <= n <= most
template <int most, class Function>
void with_constant(int n, const Function& f) {
  if constexpr (most > 1)
    if (n < most) return with_constant<most - 1>(n, f);
  f.template operator()<most>();
}

// A register tile of R rows is this many vectors wide.
template <int R>
constexpr int kWide = R * 8 <= kSums   ? 8
                      : R * 4 <= kSums ? 4
                      : R * 2 <= kSums ? 2
                                       : 1;
constexpr int kRows = kSums < kRegisterRows ? kSums : kRegisterRows;
constexpr int kPromptRows = kSums < 6 ? kSums : 6;

// Rounds `count` scaled floats to left elements. Writes whole vectors: up to 15 elements more.
template <DType type>
void pack_left(const float* from, int32_t count, float scale, Left<type>* to) {
  for (int32_t i = 0; i < count; i += 16) {
    const Lanes a = count - i >= 16 ? load(from + i) : load_first(from + i, count - i);
    Side<type>::store_left(to + i / Side<type>::together, a * broadcast(scale));
  }
}

// Where a run's keys or values lie and what to fetch into the cache while they are read: the byte
// `ahead` of the corresponding one. Runs from `ahead_runs` on have nothing to fetch.
struct Stream {
  const std::byte* at;
  size_t run_bytes;
  const std::byte* ahead = nullptr;
  int32_t ahead_runs = 0;
};

// logits[r][16 p + lane] = q[r] . key, for P runs
template <DType type, int R, int P, bool fetch>
void score_tile(const Left<type>* q, int32_t steps, const Stream& keys, int32_t run, float* logits,
                size_t stride) {
  using S = Side<type>;
  const size_t run_bytes = keys.run_bytes, start = size_t(run) * run_bytes;
  Lanes sum[R][P];
#pragma GCC unroll 8
  for (int r = 0; r < R; r++)
#pragma GCC unroll 8
    for (int p = 0; p < P; p++) sum[r][p] = zero();
  for (int32_t i = 0; i < steps; i++) {
    typename S::Right w[P];
#pragma GCC unroll 8
    for (int p = 0; p < P; p++) {
      const size_t offset = start + size_t(p) * run_bytes + size_t(i) * S::bytes;
      w[p] = S::load_right(keys.at + offset);
      if constexpr (fetch)
        if (S::bytes == 64 || i % 2 == 0) prefetch(keys.ahead + offset);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) {
      const auto x = broadcast(q[r * steps + i]);
#pragma GCC unroll 8
      for (int p = 0; p < P; p++) sum[r][p] = S::step(sum[r][p], w[p], x);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; r++)
#pragma GCC unroll 8
    for (int p = 0; p < P; p++) store(logits + size_t(r) * stride + (run + p) * 16, sum[r][p]);
}

// All `runs` of a block.
template <DType type, int R, bool fetch>
void score(const Left<type>* q, int32_t head_dim, const Stream& keys, int32_t runs, float* logits,
           size_t stride) {
  constexpr int P = kWide<R> < 4 ? kWide<R> : 4;
  const int32_t steps = head_dim / Side<type>::together;
  int32_t run = 0;
  for (; run + P <= runs; run += P)
    score_tile<type, R, P, fetch>(q, steps, keys, run, logits, stride);
  for (; run < runs; run++) score_tile<type, R, 1, fetch>(q, steps, keys, run, logits, stride);
}

constexpr float kLowest = -std::numeric_limits<float>::max();

// One row's logits of one block -> weights e^(logit - most), with `most` and the lane sums `total`
// brought up to date. Returns what earlier weights and sums are to be multiplied with. `most`
// starts at kLowest, not at -inf, so that logits of -inf weigh 0 instead of NaN. A NaN is no
// maximum, but its own weight.
template <DType type>
float weigh(const float* logits, int32_t slots, float& most, float* total, Left<type>* weights) {
  const int32_t whole = slots / 16 * 16;
  const Mask rest = first(slots - whole);
  const Lanes lowest = broadcast(kLowest);
  Lanes top = broadcast(most);
  for (int32_t i = 0; i < whole; i += 16) top = max(load(logits + i), top);
  if (whole < slots) top = max(select(rest, load(logits + whole), lowest), top);
  const float before = most;
  most = reduce_max(top);
  const Lanes base = broadcast(most);
  float shrink = 1;
  Lanes sum = load(total);
  if (most != before) {
    float by[16];
    store(by, exp(broadcast(before) - base));
    shrink = by[0];
    sum = sum * broadcast(shrink);
  }
  for (int32_t i = 0; i < whole; i += 16) {
    const Lanes w = exp(load(logits + i) - base);
    sum = sum + w;
    Side<type>::store_left(weights + i / Side<type>::together, w);
  }
  if (whole < slots) {
    const Lanes w = select(rest, exp(load(logits + whole) - base), zero());
    sum = sum + w;
    Side<type>::store_left(weights + whole / Side<type>::together, w);
  }
  store(total, sum);
  return shrink;
}

// out[r][16 v + lane] = out * shrink[r] + weights[r] . values over steps [from, to), V vectors of
// components from `values.at` on. A step is one slot or, in bf16, two.
template <DType type, int R, int V, bool fetch>
void mix_tile(const Left<type>* weights, const Stream& values, size_t step_bytes, int32_t from,
              int32_t to, const float* shrink, float* out, int32_t out_stride) {
  using S = Side<type>;
  constexpr int32_t run_steps = kRunSlots / S::together, stride = kAttendBlock / S::together;
  Lanes sum[R][V];
#pragma GCC unroll 8
  for (int r = 0; r < R; r++)
#pragma GCC unroll 8
    for (int v = 0; v < V; v++)
      sum[r][v] = load(out + r * out_stride + v * 16) * broadcast(shrink[r]);
  for (int32_t i = from; i < to;) {
    const int32_t run = i / run_steps,
                  end = to < (run + 1) * run_steps ? to : (run + 1) * run_steps;
    const std::byte* const base = values.at + size_t(run) * values.run_bytes;
    const std::byte* const ahead =
        run < values.ahead_runs ? values.ahead + size_t(run) * values.run_bytes : base;
    for (; i < end; i++) {
      const size_t offset = size_t(i % run_steps) * step_bytes;
      typename S::Right w[V];
#pragma GCC unroll 8
      for (int v = 0; v < V; v++) {
        w[v] = S::load_right(base + offset + v * S::bytes);
        if constexpr (fetch)
          if (S::bytes == 64 || v % 2 == 0) prefetch(ahead + offset + v * S::bytes);
      }
#pragma GCC unroll 8
      for (int r = 0; r < R; r++) {
        const auto x = broadcast(weights[r * stride + i]);
#pragma GCC unroll 8
        for (int v = 0; v < V; v++) sum[r][v] = S::step(sum[r][v], w[v], x);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; r++)
#pragma GCC unroll 8
    for (int v = 0; v < V; v++) store(out + r * out_stride + v * 16, sum[r][v]);
}

// What mix_tile leaves: steps whose vectors are not whole, because d ends in the middle of one
// (d % 16 = 8) or because a bf16 pair's second slot is not the row's to see. What lies there may be
// any bits, so it is not multiplied with a zero weight but never read.
template <DType type>
void mix_edge(const Left<type>* weights, const Stream& values, size_t step_bytes, int32_t from,
              int32_t to, int32_t components, bool half, float shrink, float* out) {
  using S = Side<type>;
  constexpr int32_t run_steps = kRunSlots / S::together;
  constexpr size_t element = type == DType::f32 ? 4 : 2;
  Lanes sum = load(out) * broadcast(shrink);
  for (int32_t i = from; i < to; i++) {
    alignas(64) std::byte copy[64] = {};
    const std::byte* const step =
        values.at + size_t(i / run_steps) * values.run_bytes + size_t(i % run_steps) * step_bytes;
    if (half)
      for (int32_t e = 0; e < components; e++) memcpy(copy + e * 4, step + e * 4, 2);
    else
      memcpy(copy, step, size_t(components) * element * S::together);
    sum = S::step(sum, S::load_right(copy), broadcast(weights[i]));
  }
  store(out, sum);
}

// out[r] = out[r] * shrink[r] + weights[r] . values[0, slots[r]), each row over exactly its own
// slots, in ascending order; slots ascend with r. Rows `padded(d)` apart.
template <DType type, int R, bool fetch>
void mix(const Left<type>* weights, const Stream& values, int32_t head_dim, const int32_t* slots,
         const float* shrink, float* out) {
  using S = Side<type>;
  constexpr int32_t stride = kAttendBlock / S::together;
  constexpr size_t element = type == DType::f32 ? 4 : 2;
  const size_t step_bytes = size_t(head_dim) * element * S::together;
  const int32_t out_stride = padded(head_dim), shared = slots[0] / S::together;
  const float none[1] = {1.0f};
  const auto at = [&](int32_t e) {  // the values' components from e on
    Stream s = values;
    const size_t offset = size_t(e) * element * S::together;
    s.at += offset;
    if (s.ahead) s.ahead += offset;
    return s;
  };
  int32_t e = 0;
  const auto shared_part = [&]<int V>() {
    for (; e + V * 16 <= head_dim; e += V * 16)
      mix_tile<type, R, V, fetch>(weights, at(e), step_bytes, 0, shared, shrink, out + e,
                                  out_stride);
  };
  shared_part.template operator()<kWide<R>>();
  if constexpr (kWide < R >> 4) shared_part.template operator()<4>();
  if constexpr (kWide < R >> 1) shared_part.template operator()<1>();
  for (int r = 0; r < R; r++) {
    const Left<type>* const row = weights + r * stride;
    float* const sum = out + r * out_stride;
    if (e < head_dim)
      mix_edge<type>(row, at(e), step_bytes, 0, shared, head_dim - e, false, shrink[r], sum + e);
    const int32_t whole = slots[r] / S::together;
    for (int32_t v = 0; v < head_dim; v += 16) {
      const int32_t components = head_dim - v < 16 ? head_dim - v : 16;
      if (whole > shared) {
        if (components == 16)
          mix_tile<type, 1, 1, false>(row, at(v), step_bytes, shared, whole, none, sum + v, 0);
        else
          mix_edge<type>(row, at(v), step_bytes, shared, whole, components, false, 1, sum + v);
      }
      if (slots[r] % S::together != 0)
        mix_edge<type>(row, at(v), step_bytes, whole, whole + 1, components, true, 1, sum + v);
    }
  }
}

// The end of a row: its weighted sum divided by the total weight, and the log-sum-exp.
float finish_row(const float* sum, int32_t head_dim, float most, float total, float* out) {
  const Lanes divisor = broadcast(total);
  for (int32_t e = 0; e < head_dim; e += 16) {
    const Lanes a = load(sum + e) / divisor;
    if (head_dim - e >= 16)
      store(out + e, a);
    else
      store_first(out + e, a, head_dim - e);
  }
  return most + logf(total);
}

}  // namespace
