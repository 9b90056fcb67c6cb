// Rows of normalize, gate and summarize_logits on one instruction path.

// The sum of term(i, n), n lanes each, over blocks of 256 and then over the blocks: errors grow
// with count / 256, not with count / 16.
template <class Term>
float sum_of(int64_t count, const Term& term) {
  Lanes total = zero();
  for (int64_t block = 0; block < count; block += 256) {
    const int64_t end = block + 256 < count ? block + 256 : count;
    Lanes part = zero();
    for (int64_t i = block; i < end; i += 16)
      part = part + term(i, end - i < 16 ? int(end - i) : 16);
    total = total + part;
  }
  return reduce_add(total);
}

inline Lanes load_up_to(const float* p, int n) { return n == 16 ? load(p) : load_first(p, n); }
inline void store_up_to(float* p, Lanes a, int n) {
  if (n == 16)
    store(p, a);
  else
    store_first(p, a, n);
}
inline int lanes_left(int64_t i, int64_t count) { return count - i < 16 ? int(count - i) : 16; }

static void normalize_row(const NormalizeRow& how, const float* in, float* out) {
  const int64_t width = how.width;
  float mean = 0;
  if (how.kind == NormKind::layer)
    mean = sum_of(width, [&](int64_t i, int n) { return load_up_to(in + i, n); }) / float(width);
  const Lanes centre = broadcast(mean);
  const float squares = sum_of(width, [&](int64_t i, int n) {
    const Lanes d = load_up_to(in + i, n) - centre;
    return n == 16 ? d * d : select(first(n), d * d, zero());
  });
  const Lanes scale =
      broadcast(float(1.0 / ::sqrt(double(squares) / double(width) + double(how.epsilon))));
  for (int64_t i = 0; i < width; i += 16) {
    const int n = lanes_left(i, width);
    const Lanes d = (load_up_to(in + i, n) - centre) * scale;
    const Lanes bias = how.bias ? load_up_to(how.bias + i, n) : zero();
    store_up_to(out + i, fma(d, load_up_to(how.gain + i, n), bias), n);
  }
}

template <Activation kind>
void gate_row_as(const float* gate, const float* up, int64_t width, float* out) {
  for (int64_t i = 0; i < width; i += 16) {
    const int n = lanes_left(i, width);
    store_up_to(out + i, activate<kind>(load_up_to(gate + i, n)) * load_up_to(up + i, n), n);
  }
}

static void gate_row(Activation kind, const float* gate, const float* up, int64_t width,
                     float* out) {
  switch (kind) {
    case Activation::none:
      return gate_row_as<Activation::none>(gate, up, width, out);
    case Activation::relu:
      return gate_row_as<Activation::relu>(gate, up, width, out);
    case Activation::silu:
      return gate_row_as<Activation::silu>(gate, up, width, out);
    case Activation::gelu:
      return gate_row_as<Activation::gelu>(gate, up, width, out);
    case Activation::gelu_tanh:
      return gate_row_as<Activation::gelu_tanh>(gate, up, width, out);
  }
}

static LogitsPiece summarize_piece(const float* logits, int64_t count) {
  constexpr float kLeast = -std::numeric_limits<float>::infinity();
  // max() forgets a NaN, but the sum below meets it again. A tail repeats the piece's first value.
  const auto values = [&](int64_t i, int n) {
    return n == 16 ? load(logits + i)
                   : select(first(n), load_first(logits + i, n), broadcast(logits[0]));
  };
  Lanes highest = broadcast(kLeast);
  bool sound = true;
  for (int64_t i = 0; i < count; i += 16) highest = max(values(i, lanes_left(i, count)), highest);
  const float most = reduce_max(highest);
  if (most == kLeast) {  // no difference to take; a NaN would make one
    for (int64_t i = 0; i < count; i++) sound = sound && logits[i] == kLeast;
    return {most, sound ? 0.0f : std::numeric_limits<float>::quiet_NaN()};
  }
  const Lanes top = broadcast(most);
  return {most, sum_of(count, [&](int64_t i, int n) {
            const Lanes e = exp(load_up_to(logits + i, n) - top);
            return n == 16 ? e : select(first(n), e, zero());
          })};
}

template <DType dtype>
void encode_as(const float* from, int64_t count, std::byte* to) {
  constexpr int64_t kBytes = dtype == DType::f32 ? 4 : 2;
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) store_as<dtype>(to + i * kBytes, load(from + i));
  if (i == count) return;
  std::byte rest[16 * kBytes];
  store_as<dtype>(rest, load_first(from + i, int(count - i)));
  memcpy(to + i * kBytes, rest, size_t((count - i) * kBytes));
}

static void encode(DType dtype, const float* from, int64_t count, std::byte* to) {
  if (dtype == DType::f32)
    encode_as<DType::f32>(from, count, to);
  else if (dtype == DType::f16)
    encode_as<DType::f16>(from, count, to);
  else
    encode_as<DType::bf16>(from, count, to);
}

const ElementwisePath elementwise{normalize_row, gate_row, summarize_piece, encode};
