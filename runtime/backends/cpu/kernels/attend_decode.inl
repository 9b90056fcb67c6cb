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

// Logits of R rows of the group, kRotatedRuns runs of rotated keys at a time.
template <DType type, int R>
void score_rotated(const DecodePart& part, const float* q, int32_t runs, float* panels,
                   float* logits, size_t stride) {
  const int32_t d = part.layout.head_dim;
  const Stream keys{reinterpret_cast<const std::byte*>(panels), size_t(d) * 64};
  for (int32_t run = 0; run < runs; run += kRotatedRuns) {
    const int32_t count = runs - run < kRotatedRuns ? runs - run : kRotatedRuns;
    for (int32_t i = 0; i < count; i++)
      rotate_run<type>(part.runs + size_t(run + i) * part.layout.run_bytes(), d, part.rotation,
                       part.rotation.ranks + (run + i) * 16, part.slots - (run + i) * 16,
                       panels + size_t(i) * size_t(d) * 16);
    score<DType::f32, R, false>(q, d, keys, count, logits + run * 16, stride);
  }
}

// Rows [row, row + R) of the group. The first rows fetch: values while keys are read, then the keys
// that this thread reads next.
template <DType type, int R, bool fetch>
void decode_rows(const DecodePart& part, int32_t row, const TileScratch& scratch) {
  const int32_t d = part.layout.head_dim, runs = (part.slots + 15) / 16;
  const size_t run_bytes = part.layout.run_bytes(), half = part.layout.values_offset();
  const float* const q = part.q + row * d;
  float* const logits =
      part.logits ? part.logits + size_t(row) * part.logits_stride : scratch.logits;
  const size_t stride = part.logits ? part.logits_stride : size_t(kAttendBlock);
  if (part.rotation.ranks) {
    auto* const turned = static_cast<float*>(scratch.left);
    for (int r = 0; r < R; r++) {
      float* const to = turned + r * d;
      rotate_row(q + r * d, d, part.rotation, part.rotation.query_rank, to);
      for (int32_t e = 0; e < d; e++) to[e] *= part.scale;
    }
    score_rotated<type, R>(part, turned, runs, scratch.panels, logits, stride);
  } else {
    auto* const left = static_cast<Left<type>*>(scratch.left);
    for (int r = 0; r < R; r++)
      pack_left<type>(q + r * d, d, part.scale, left + r * (d / Side<type>::together));
    score<type, R, fetch>(left, d, {part.runs, run_bytes, part.runs + half, 0}, runs, logits,
                          stride);
  }
  auto* const weights = static_cast<Left<type>*>(scratch.weights);
  const int32_t sum_stride = int32_t(sums_stride(d));
  float shrink[R];
  int32_t slots[R];
  for (int r = 0; r < R; r++) {
    float* const end = part.sums + (row + r) * sum_stride + padded(d);
    float total[16] = {};
    end[0] = kLowest;
    weigh<type>(logits + size_t(r) * stride, part.slots, end[0], total,
                weights + r * (kAttendBlock / Side<type>::together));
    end[1] = reduce_add(load(total));
    shrink[r] = 1;
    slots[r] = part.slots;
  }
  const Stream values{part.runs + half, run_bytes, part.next_runs, part.next_run_count};
  memset(scratch.out, 0, size_t(R * padded(d)) * sizeof(float));
  mix<type, R, fetch>(weights, values, d, slots, shrink, scratch.out);
  for (int r = 0; r < R; r++)
    memcpy(part.sums + (row + r) * sum_stride, scratch.out + r * padded(d),
           size_t(padded(d)) * sizeof(float));
}

template <DType type>
void decode_part_of(const DecodePart& part, const TileScratch& scratch) {
  for (int32_t row = 0; row < part.group; row += kRows) {
    const int32_t rows = part.group - row < kRows ? part.group - row : kRows;
    with_constant<kRows>(rows, [&]<int R>() {
      if (row == 0)
        decode_rows<type, R, true>(part, row, scratch);
      else
        decode_rows<type, R, false>(part, row, scratch);
    });
  }
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
