#include "test/ops/linear_case.hpp"

#include <cstring>
#include <random>

#include "runtime/backends/cpu/kernels/linear.hpp"
#include "runtime/backends/cpu/kernels/pack.hpp"
#include "runtime/base/aligned.hpp"
#include "runtime/base/half.hpp"

namespace hydrant::test {
namespace {

double half_at(const uint8_t* p) { return f16_to_f32(uint16_t(p[0] | p[1] << 8)); }

// GGUF's blocks, as its description has them: one whole block to doubles.
void decode_q8_0(const uint8_t* p, double* y) {
  for (int i = 0; i < 32; i++) y[i] = half_at(p) * int8_t(p[2 + i]);
}
void decode_q4_0(const uint8_t* p, double* y) {
  for (int i = 0; i < 16; i++) {
    y[i] = half_at(p) * ((p[2 + i] & 15) - 8);
    y[i + 16] = half_at(p) * ((p[2 + i] >> 4) - 8);
  }
}
void decode_q4_1(const uint8_t* p, double* y) {
  for (int i = 0; i < 16; i++) {
    y[i] = half_at(p) * (p[4 + i] & 15) + half_at(p + 2);
    y[i + 16] = half_at(p) * (p[4 + i] >> 4) + half_at(p + 2);
  }
}
void decode_q4_k(const uint8_t* p, double* y) {
  const uint8_t *factors = p + 4, *codes = p + 16;
  for (int i = 0; i < 256; i++) {
    const int j = i / 32;
    int scale = factors[j] & 63, minimum = j < 4 ? factors[j + 4] & 63 : 0;
    if (j >= 4) {
      scale = (factors[j + 4] & 15) + (factors[j - 4] >> 6) * 16;
      minimum = (factors[j + 4] >> 4) + (factors[j] >> 6) * 16;
    }
    const uint8_t both = codes[i / 64 * 32 + i % 32];
    const int code = i % 64 < 32 ? both & 15 : both >> 4;
    y[i] = half_at(p) * scale * code - half_at(p + 2) * minimum;
  }
}
void decode_q6_k(const uint8_t* p, double* y) {
  for (int i = 0; i < 256; i++) {
    const int half = i / 128, quarter = i % 128 / 32, l = i % 32;
    const uint8_t low = p[half * 64 + quarter % 2 * 32 + l];
    const int nibble = quarter < 2 ? low & 15 : low >> 4;
    const int top = p[128 + half * 32 + l] >> (2 * quarter) & 3;
    y[i] = half_at(p + 208) * int8_t(p[192 + i / 16]) * (nibble + 16 * top - 32);
  }
}

void put_half(uint8_t* p, float f) {
  const uint16_t h = f32_to_f16(f);
  memcpy(p, &h, 2);
}

void random_block(DType format, std::mt19937& g, uint8_t* p, double* y) {
  const auto bytes = size_t(block_bytes(format));
  std::normal_distribution<float> normal(0, 0.05f);
  std::uniform_real_distribution<float> scale(0.001f, 0.01f);
  for (size_t i = 0; i < bytes; i++) p[i] = uint8_t(g() >> 13);
  switch (format) {
    case DType::f32: {
      const float f = normal(g);
      memcpy(p, &f, 4);
      *y = f;
      return;
    }
    case DType::f16:
      put_half(p, normal(g));
      *y = half_at(p);
      return;
    case DType::bf16: {
      const uint16_t h = f32_to_bf16(normal(g));
      memcpy(p, &h, 2);
      *y = bf16_to_f32(h);
      return;
    }
    case DType::q8_0:
      put_half(p, scale(g) / 16);
      p[2 + g() % 32] = 0x80;  // -128 is legal and must not overflow anything
      return decode_q8_0(p, y);
    case DType::q4_0:
      put_half(p, scale(g));
      return decode_q4_0(p, y);
    case DType::q4_1:
      put_half(p, scale(g));
      put_half(p + 2, -scale(g) * 8);
      return decode_q4_1(p, y);
    case DType::q4_k:
      put_half(p, scale(g) / 32);
      put_half(p + 2, scale(g) / 8);
      return decode_q4_k(p, y);
    case DType::q6_k:
      put_half(p + 208, scale(g) / 256);
      return decode_q6_k(p, y);
    case DType::i32:
      return;
  }
}

constexpr Product kProducts[] = {
    {DType::f32, Activations::f32},  {DType::f16, Activations::f32},
    {DType::bf16, Activations::f32}, {DType::bf16, Activations::bf16},
    {DType::q8_0, Activations::f32}, {DType::q8_0, Activations::int8},
    {DType::q4_0, Activations::f32}, {DType::q4_0, Activations::int8},
    {DType::q4_1, Activations::f32}, {DType::q4_1, Activations::int8},
    {DType::q4_k, Activations::f32}, {DType::q4_k, Activations::int8},
    {DType::q6_k, Activations::f32}, {DType::q6_k, Activations::int8},
    {DType::f16, Activations::f16},  // the last is a card's alone
};

}  // namespace

std::span<const Product> every_product() {
  return every_card_product().first(std::size(kProducts) - 1);
}
std::span<const Product> every_card_product() { return kProducts; }

FileWeights random_weights(DType format, int64_t n, int64_t k, uint32_t seed) {
  FileWeights w{format, n, k, {}, {}};
  w.bytes.resize(size_t(n * row_bytes(format, k)));
  w.values.resize(size_t(n * k));
  std::mt19937 g(seed);
  auto* p = reinterpret_cast<uint8_t*>(w.bytes.data());
  for (double* y = w.values.data(); y < w.values.data() + w.values.size();
       y += block_elements(format), p += block_bytes(format))
    random_block(format, g, p, y);
  return w;
}

std::vector<float> random_floats(int64_t count, uint32_t seed) {
  std::mt19937 g(seed);
  std::normal_distribution<float> normal;
  std::vector<float> v(static_cast<size_t>(count));
  for (float& f : v) f = normal(g);
  return v;
}

PackedWeights::PackedWeights(const FileWeights& file, Activations activations) {
  const size_t panel = cpu::panel_bytes(file.format, file.k);
  const int64_t panels = ceil_div(file.n, kPanelRows);
  storage_.assign(size_t(panels) * panel + 64, std::byte{0xff});  // packing must write all of it
  auto at = reinterpret_cast<uintptr_t>(storage_.data());
  auto* data = storage_.data() + (align_up(at, uintptr_t{64}) - at);
  const auto row = size_t(row_bytes(file.format, file.k));
  for (int64_t p = 0; p < panels; p++) {
    std::vector<const std::byte*> rows;
    for (int64_t r = p * kPanelRows; r < std::min(file.n, (p + 1) * kPanelRows); r++)
      rows.push_back(file.bytes.data() + size_t(r) * row);
    cpu::pack_panel(file.format, file.k, rows, data + size_t(p) * panel);
  }
  weight_ = {data, file.format, activations, file.n, file.k, panel};
}

std::vector<float> product(cpu::ThreadPool& pool, cpu::Isa isa, const LinearCase& c,
                           std::span<const float> x, int64_t t) {
  LinearArgs args;
  int64_t n = 0;
  for (size_t p = 0; p < c.parts.size(); p++) {
    args.parts[p] = c.parts[p];
    n += c.parts[p].n;
  }
  std::vector<float> out(size_t(t * n), -12345.0f);
  args.in = {x.data(), DType::f32, {t, c.parts[0].k}};
  if (!c.bias.empty()) args.bias = {c.bias.data(), DType::f32, {n}};
  if (!c.residual.empty()) args.residual = {c.residual.data(), DType::f32, {t, n}};
  args.after = c.after;
  args.out = {out.data(), DType::f32, {t, n}};
  cpu::LinearScratch scratch;
  cpu::linear(pool, isa, args, scratch);
  return out;
}

}  // namespace hydrant::test
