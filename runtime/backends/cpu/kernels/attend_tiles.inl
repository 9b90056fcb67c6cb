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

// A register tile of R rows is this many vectors wide.
template <int R>
constexpr int kWide = R * 8 <= kSums   ? 8
                      : R * 4 <= kSums ? 4
                      : R * 2 <= kSums ? 2
                                       : 1;
constexpr int kRows = kSums >= 24 ? 8 : kSums >= 6 ? 6 : 1;
constexpr int kPromptRows = kRows < 6 ? kRows : 6;

// Calls f<R>(row) with the tallest tile of at most `most` rows that `left` rows fill: 8, 6, 4, 3, 2
// or
// 1. Returns R.
template <int most, class Function>
int32_t with_tile(int32_t left, int32_t row, const Function& f) {
  if constexpr (most > 1)
    if (left < most)
      return with_tile < most == 8 || most == 6 ? most - 2 : most - 1 > (left, row, f);
  f.template operator()<most>(row);
  return most;
}
template <int most, class Function>
void for_each_tile(int32_t begin, int32_t end, const Function& f) {
  for (int32_t row = begin; row < end;) row += with_tile<most>(end - row, row, f);
}

// Rounds `count` scaled floats to left elements. Writes whole vectors: up to 15 elements more.
template <DType type>
void pack_left(const float* from, int32_t count, float scale, Left<type>* to) {
  for (int32_t i = 0; i < count; i += 16) {
    const Lanes a = count - i >= 16 ? load(from + i) : load_first(from + i, count - i);
    Side<type>::store_left(to + i / Side<type>::together, a * broadcast(scale));
  }
}

// Keys or values of a few runs.
struct Runs {
  const std::byte* at;
  size_t bytes;  // of one run

  const std::byte* operator[](int32_t r) const { return at + size_t(r) * bytes; }
};

// logits[r][p] = q[r] . keys of run p. A sum is C chains over every C-th step, added at
// the end: one run of keys has too few sums to hide the latency of a step.
template <DType type, int R, int P, int C>
void score_tile(const Left<type>* q, int32_t steps, const Runs& keys, Lanes (&logits)[R][P]) {
  using S = Side<type>;
  Lanes sum[C][R][P];
#pragma GCC unroll 8
  for (int c = 0; c < C; c++)
#pragma GCC unroll 8
    for (int r = 0; r < R; r++)
#pragma GCC unroll 8
      for (int p = 0; p < P; p++) sum[c][r][p] = zero();
  const std::byte* at = keys.at;
  for (int32_t i = 0; i < steps; i += C)
#pragma GCC unroll 8
    for (int c = 0; c < C; c++, at += S::bytes) {
      typename S::Right w[P];
#pragma GCC unroll 8
      for (int p = 0; p < P; p++) w[p] = S::load_right(at + size_t(p) * keys.bytes);
#pragma GCC unroll 8
      for (int r = 0; r < R; r++) {
        const auto x = broadcast(q[r * steps + i + c]);
#pragma GCC unroll 8
        for (int p = 0; p < P; p++) sum[c][r][p] = S::step(sum[c][r][p], w[p], x);
      }
    }
#pragma GCC unroll 8
  for (int r = 0; r < R; r++)
#pragma GCC unroll 8
    for (int p = 0; p < P; p++) {
      Lanes all = sum[0][r][p];
      if constexpr (C >= 2) all = all + sum[1][r][p];
      if constexpr (C == 4) all = all + (sum[2][r][p] + sum[3][r][p]);
      logits[r][p] = all;
    }
}

// The logits of a block, one chain each however many runs there are.
template <DType type, int R, int P>
void score_runs(const Left<type>* q, int32_t steps, const Runs& keys, float* logits) {
  Lanes tile[R][P];
  score_tile<type, R, P, 1>(q, steps, keys, tile);
#pragma GCC unroll 8
  for (int r = 0; r < R; r++)
#pragma GCC unroll 8
    for (int p = 0; p < P; p++) store(logits + r * kAttendBlock + p * 16, tile[r][p]);
}
template <DType type, int R>
void score(const Left<type>* q, int32_t head_dim, const Runs& keys, int32_t runs, float* logits) {
  constexpr int P = kWide<R> < 4 ? kWide<R> : 4;
  const int32_t steps = head_dim / Side<type>::together;
  int32_t run = 0;
  for (; run + P <= runs; run += P)
    score_runs<type, R, P>(q, steps, {keys[run], keys.bytes}, logits + run * 16);
  for (; run < runs; run++)
    score_runs<type, R, 1>(q, steps, {keys[run], keys.bytes}, logits + run * 16);
}

constexpr float kLowest = -std::numeric_limits<float>::max();

// e^x for x <= 0, 0 where it would leave the normal floats, within 2e-7: a polynomial of least
// error on half of log 2, a degree lower than what exp() needs for its wider promise. 1 at 0; NaN
// stays.
inline Lanes exp_of_loss(Lanes x) {
  const Lanes least = broadcast(-86.6f), bounded = max(least, x);
  const Lanes n = round(bounded * broadcast(1.44269504f));
  Lanes r = fma(n, broadcast(-0.693359375f), bounded);  // log 2 in two parts, the first exact
  r = fma(n, broadcast(2.12194440e-4f), r);
  Lanes p = broadcast(8.2903067e-3f);
  p = fma(p, r, broadcast(4.1897975e-2f));
  p = fma(p, r, broadcast(1.6667637e-1f));
  p = fma(p, r, broadcast(4.9999151e-1f));
  p = fma(p, r, broadcast(9.9999970e-1f));
  p = fma(p, r, broadcast(1.0f));
  return select(less(x, least), zero(), times_power_of_two(p, n));
}

// The softmax of one row so far. `most` starts at kLowest, not at -inf, so that logits of -inf
// weigh 0 instead of NaN; a NaN is no maximum, but its own weight.
struct RowState {
  float* most;   // the largest logit
  float* total;  // [16] sums of weights, lane by lane
  float* out;    // [components] sums of weighted values
  int32_t components;
};

// A larger logit has come: brings the row's sums to the new base.
[[gnu::noinline]] void raise(const RowState& row, Lanes top) {
  const Lanes before = broadcast(*row.most);
  *row.most = reduce_max(top);
  const Lanes shrink = exp_of_loss(before - broadcast(*row.most));
  store(row.total, load(row.total) * shrink);
  for (int32_t e = 0; e < row.components; e += 16) store(row.out + e, load(row.out + e) * shrink);
}

// One row's logits of one block -> weights e^(logit - most).
template <DType type>
void weigh(const float* logits, int32_t slots, const RowState& row, Left<type>* weights) {
  const int32_t whole = slots / 16 * 16;
  const Lanes nothing = broadcast(-std::numeric_limits<float>::infinity());
  const Mask rest = first(slots - whole);
  Lanes top = nothing;
  for (int32_t i = 0; i < whole; i += 16) top = max(load(logits + i), top);
  if (whole < slots) top = max(select(rest, load(logits + whole), nothing), top);
  if (bits(less(broadcast(*row.most), top)) != 0) raise(row, top);
  const Lanes base = broadcast(*row.most);
  Lanes sum = load(row.total);
  for (int32_t i = 0; i < whole; i += 16) {
    const Lanes w = exp_of_loss(load(logits + i) - base);
    sum = sum + w;
    Side<type>::store_left(weights + i / Side<type>::together, w);
  }
  if (whole < slots) {
    const Lanes w = exp_of_loss(select(rest, load(logits + whole), nothing) - base);
    sum = sum + w;
    Side<type>::store_left(weights + whole / Side<type>::together, w);
  }
  store(row.total, sum);
}

// out[r][16 v + lane] += weights[r] . values over steps [from, to), V vectors of
// components from `values.at` on. A step is one slot or, in bf16, two.
template <DType type, int R, int V>
void mix_tile(const Left<type>* weights, const Runs& values, size_t step_bytes, int32_t from,
              int32_t to, float* out, int32_t out_stride) {
  using S = Side<type>;
  constexpr int32_t run_steps = kRunSlots / S::together, stride = kAttendBlock / S::together;
  Lanes sum[R][V];
#pragma GCC unroll 8
  for (int r = 0; r < R; r++)
#pragma GCC unroll 8
    for (int v = 0; v < V; v++) sum[r][v] = load(out + r * out_stride + v * 16);
  for (int32_t i = from; i < to;) {
    const int32_t run = i / run_steps,
                  end = to < (run + 1) * run_steps ? to : (run + 1) * run_steps;
    const std::byte* at = values[run] + size_t(i % run_steps) * step_bytes;
    for (; i < end; i++, at += step_bytes) {
      typename S::Right w[V];
#pragma GCC unroll 8
      for (int v = 0; v < V; v++) w[v] = S::load_right(at + v * S::bytes);
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
void mix_edge(const Left<type>* weights, const Runs& values, size_t step_bytes, int32_t from,
              int32_t to, int32_t components, bool half, float* out) {
  using S = Side<type>;
  constexpr int32_t run_steps = kRunSlots / S::together;
  constexpr size_t element = type == DType::f32 ? 4 : 2;
  Lanes sum = load(out);
  for (int32_t i = from; i < to; i++) {
    alignas(64) std::byte copy[64] = {};
    const std::byte* const step = values[i / run_steps] + size_t(i % run_steps) * step_bytes;
    if (half)
      for (int32_t e = 0; e < components; e++) memcpy(copy + e * 4, step + e * 4, 2);
    else
      memcpy(copy, step, size_t(components) * element * S::together);
    sum = S::step(sum, S::load_right(copy), broadcast(weights[i]));
  }
  store(out, sum);
}

// out[r] += weights[r] . values[0, slots[r]), each row over exactly its own
// slots, in ascending order; slots ascend with r. Rows `padded(d)` apart.
template <DType type, int R>
void mix(const Left<type>* weights, const Runs& values, int32_t head_dim, const int32_t* slots,
         float* out) {
  using S = Side<type>;
  constexpr int32_t stride = kAttendBlock / S::together;
  constexpr size_t element = type == DType::f32 ? 4 : 2;
  const size_t step_bytes = size_t(head_dim) * element * S::together;
  const int32_t out_stride = padded(head_dim), shared = slots[0] / S::together;
  const auto at = [&](int32_t e) {  // the values' components from e on
    return Runs{values.at + size_t(e) * element * S::together, values.bytes};
  };
  int32_t e = 0;
  // whole rows of values where they fit the registers: decode reads memory in order of address then
  constexpr int H = R % 4 == 0 ? 2 : R;
  if constexpr (H * 8 <= kSums)
    if (head_dim == 128) {
      for (int r = 0; r < R; r += H)
        mix_tile<type, H, 8>(weights + r * stride, values, step_bytes, 0, shared,
                             out + r * out_stride, out_stride);
      e = head_dim;
    }
  if constexpr (R == 1 && kSums >= 6) {
    if (head_dim == 80) mix_tile<type, 1, 5>(weights, values, step_bytes, 0, shared, out, 0);
    if (head_dim == 96) mix_tile<type, 1, 6>(weights, values, step_bytes, 0, shared, out, 0);
    if (head_dim == 80 || head_dim == 96) e = head_dim;
  }
  const auto shared_part = [&]<int V>() {
    for (; e + V * 16 <= head_dim; e += V * 16)
      mix_tile<type, R, V>(weights, at(e), step_bytes, 0, shared, out + e, out_stride);
  };
  shared_part.template operator()<kWide<R>>();
  if constexpr (kWide < R >> 4) shared_part.template operator()<4>();
  if constexpr (kWide < R >> 1) shared_part.template operator()<1>();
  for (int r = 0; r < R; r++) {
    const Left<type>* const row = weights + r * stride;
    float* const sum = out + r * out_stride;
    if (e < head_dim)
      mix_edge<type>(row, at(e), step_bytes, 0, shared, head_dim - e, false, sum + e);
    const int32_t whole = slots[r] / S::together;
    for (int32_t v = 0; v < head_dim; v += 16) {
      const int32_t components = head_dim - v < 16 ? head_dim - v : 16;
      if (whole > shared) {
        if (components == 16)
          mix_tile<type, 1, 1>(row, at(v), step_bytes, shared, whole, sum + v, 0);
        else
          mix_edge<type>(row, at(v), step_bytes, shared, whole, components, false, sum + v);
      }
      if (slots[r] % S::together != 0)
        mix_edge<type>(row, at(v), step_bytes, whole, whole + 1, components, true, sum + v);
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
