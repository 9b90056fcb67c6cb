// Decode: one query per head of a group over a part of a row's slots, and the parts put together.
namespace {

// x[0, d) turned by row `rank` of the table
void rotate_row(const float* x, int32_t head_dim, const RankRotation& turn, int32_t rank,
                float* out) {
  const int32_t half = turn.dims / 2;
  const float* const t = turn.table + size_t(rank) * size_t(turn.dims);
  for (int32_t e = 0; e < half; e++) {
    out[e] = x[e] * t[2 * e] - x[e + half] * t[2 * e + 1];
    out[e + half] = x[e + half] * t[2 * e] + x[e] * t[2 * e + 1];
  }
  for (int32_t e = turn.dims; e < head_dim; e++) out[e] = x[e];
}

// A run's keys as f32 [d][16], each turned to its rank. `slots`: how many of the run are alive.
template <DType type>
void rotate_run(const std::byte* keys, int32_t head_dim, const RankRotation& turn,
                const int32_t* ranks, int32_t slots, float* panel) {
  if constexpr (type == DType::bf16) {
    const Pair first_of_two = make_pair(1, 0), second_of_two = make_pair(0, 1);
    for (int32_t e = 0; e < head_dim; e += 2) {  // a product with 1 and 0 takes a pair apart
      const Pairs both = load_pairs(keys + e * 32);
      store(panel + e * 16, dot(zero(), both, broadcast(first_of_two)));
      store(panel + e * 16 + 16, dot(zero(), both, broadcast(second_of_two)));
    }
  } else {
    for (int32_t e = 0; e < head_dim; e++)
      store(panel + e * 16, load_as<type>(keys + e * Side<type>::bytes));
  }
  const float* row[16];
  for (int lane = 0; lane < 16; lane++)
    row[lane] = turn.table + size_t(ranks[lane < slots ? lane : 0]) * size_t(turn.dims);
  const int32_t half = turn.dims / 2;
  for (int32_t e = 0; e < half; e++) {
    float cosine[16], sine[16];
    for (int lane = 0; lane < 16; lane++) {
      cosine[lane] = row[lane][2 * e];
      sine[lane] = row[lane][2 * e + 1];
    }
    const Lanes c = load(cosine), s = load(sine);
    float *const low = panel + e * 16, *const high = low + half * 16;
    const Lanes a = load(low), b = load(high);
    store(low, a * c - b * s);
    store(high, b * c + a * s);
  }
}

// Rows [row, row + R) of a part's group, their logits in C chains each. Each run is read once from
// its first byte to its last: the processor fetches ahead by itself along a plain sequence of
// addresses, and only there; out of order or with prefetch instructions memory was read at half the
// speed.
template <DType type, int R, int C>
class DecodeRows {
 public:
  DecodeRows(const DecodePart& part, int32_t row, const TileScratch& scratch)
      : part_(part), scratch_(scratch), row_(row) {
    logits_ = part.logits ? part.logits + size_t(row) * part.logits_stride : nullptr;
    stride_ = part.logits_stride;
    const int32_t d = part.layout.head_dim;
    for (int r = 0; r < R; r++) {
      const float* const q = part.q + (row + r) * d;
      if (part.rotation.ranks) {
        float* const turned = static_cast<float*>(scratch.left) + r * d;
        rotate_row(q, d, part.rotation, part.rotation.query_rank, turned);
        for (int32_t e = 0; e < d; e++) turned[e] *= part.scale;
      } else {
        pack_left<type>(q, d, part.scale, left() + r * (d / Side<type>::together));
      }
      scratch.most[r] = kLowest;
    }
    memset(scratch.out, 0, size_t(R * padded(d)) * sizeof(float));
    memset(scratch.total, 0, size_t(R * 16) * sizeof(float));
  }

  int32_t runs() const { return (part_.slots + kRunSlots - 1) / kRunSlots; }

  void read_keys(int32_t run) {
    const int32_t d = part_.layout.head_dim, begin = run * kRunSlots;
    const std::byte* const keys = part_.runs + size_t(run) * part_.layout.run_bytes();
    Lanes logits[R][1];
    if (part_.rotation.ranks) {
      rotate_run<type>(keys, d, part_.rotation, part_.rotation.ranks + begin, live(run),
                       scratch_.panel);
      const auto* const panel = reinterpret_cast<const std::byte*>(scratch_.panel);
      score_tile<DType::f32, R, 1, C>(static_cast<const float*>(scratch_.left), d, {panel, 0},
                                      logits);
    } else {
      score_tile<type, R, 1, C>(left(), d / Side<type>::together, {keys, 0}, logits);
    }
    if (logits_)
      for (int r = 0; r < R; r++) store(logits_ + size_t(r) * stride_ + begin, logits[r][0]);
    const Lanes nothing = broadcast(-std::numeric_limits<float>::infinity());
    const Mask alive = first(live(run));
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) {
      logits[r][0] = select(alive, logits[r][0], nothing);
      if (bits(less(broadcast(scratch_.most[r]), logits[r][0])) != 0)
        raise({scratch_.most + r, scratch_.total + r * 16, scratch_.out + r * padded(d), d},
              logits[r][0]);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) {
      const Lanes w = exp_of_loss(logits[r][0] - broadcast(scratch_.most[r]));
      store(scratch_.total + r * 16, load(scratch_.total + r * 16) + w);
      Side<type>::store_left(weights() + r * (kAttendBlock / Side<type>::together), w);
    }
  }

  void read_values(int32_t run) {
    int32_t slots[R];
    for (int r = 0; r < R; r++) slots[r] = live(run);
    const std::byte* const values =
        part_.runs + size_t(run) * part_.layout.run_bytes() + part_.layout.values_offset();
    mix<type, R>(weights(), {values, 0}, part_.layout.head_dim, slots, scratch_.out);
  }

  void store_sums() {
    const int32_t d = part_.layout.head_dim;
    for (int r = 0; r < R; r++) {
      float* const sums = part_.sums + size_t(row_ + r) * sums_stride(d);
      memcpy(sums, scratch_.out + r * padded(d), size_t(padded(d)) * sizeof(float));
      sums[padded(d)] = scratch_.most[r];
      sums[padded(d) + 1] = reduce_add(load(scratch_.total + r * 16));
    }
  }

 private:
  Left<type>* left() const { return static_cast<Left<type>*>(scratch_.left); }
  Left<type>* weights() const { return static_cast<Left<type>*>(scratch_.weights); }
  int32_t live(int32_t run) const {
    const int32_t left = part_.slots - run * kRunSlots;
    return left < kRunSlots ? left : kRunSlots;
  }
  const DecodePart& part_;
  const TileScratch& scratch_;
  int32_t row_;
  float* logits_;
  size_t stride_;
};

template <DType type, int R, int C>
void decode_rows(const DecodePart& part, int32_t row, const TileScratch& scratch) {
  DecodeRows<type, R, C> rows(part, row, scratch);
  for (int32_t run = 0; run < rows.runs(); run++) {
    rows.read_keys(run);
    rows.read_values(run);
  }
  rows.store_sums();
}

// The tallest tiles of any path say how many chains a row's sums have, and a path with fewer
// registers takes such a tile in several: so all paths add in the same order.
template <DType type>
void decode_part_of(const DecodePart& part, const TileScratch& scratch) {
  for_each_tile<8>(0, part.group, [&]<int tall>(int32_t begin) {
    constexpr int chains = tall == 1 ? 4 : tall <= 4 ? 2 : 1;
    for_each_tile<(tall < kRows ? tall : kRows)>(begin, begin + tall, [&]<int R>(int32_t row) {
      decode_rows<type, R, chains>(part, row, scratch);
    });
  });
}

void decode_part(const DecodePart& part, const TileScratch& scratch) {
  if (part.layout.dtype == DType::f32) return decode_part_of<DType::f32>(part, scratch);
  if (part.layout.dtype == DType::f16) return decode_part_of<DType::f16>(part, scratch);
  decode_part_of<DType::bf16>(part, scratch);
}

void decode_merge(const DecodeMerge& m) {
  const int32_t d = m.head_dim, row_stride = int32_t(sums_stride(d));
  const size_t part_stride = size_t(m.group) * size_t(row_stride);
  for (int32_t g = 0; g < m.group; g++) {
    float* const whole = m.sums + g * row_stride;  // the first part becomes the sum of all
    float most = kLowest;
    for (int32_t p = 0; p < m.parts; p++) {
      const float other = whole[size_t(p) * part_stride + size_t(padded(d))];
      if (other > most) most = other;
    }
    float total = 0;
    for (int32_t p = 0; p < m.parts; p++) {
      const float* const part = whole + size_t(p) * part_stride;
      const Lanes factor = exp(broadcast(part[padded(d)] - most));
      float by[16];
      store(by, factor);
      total += part[padded(d) + 1] * by[0];
      for (int32_t e = 0; e < d; e += 16) {
        const Lanes add = load(part + e) * factor;
        store(whole + e, p == 0 ? add : load(whole + e) + add);
      }
    }
    const float lse = finish_row(whole, d, most, total, m.out + g * d);
    if (m.lse) m.lse[g] = lse;
  }
}

}  // namespace
