// Columns of weights out of panels (weight_layout.hpp) as f32.
#pragma once
#include "runtime/backends/cuda/kernels/elements.cuh"
#include "runtime/backends/cuda/weight_layout.hpp"
#include "runtime/device/weight.hpp"

namespace hydrant::cuda {

struct WeightView {
  const std::byte* panels;
  size_t panel_bytes;
  int64_t k;

  explicit WeightView(const Weight& w)
      : panels(static_cast<const std::byte*>(w.panels)), panel_bytes(w.panel_bytes), k(w.k) {}
  __device__ const std::byte* panel(int64_t row) const {
    return panels + size_t(row / kPanelRows) * panel_bytes;
  }
};

template <class T>
__device__ T read(const std::byte* at) {
  return *reinterpret_cast<const T*>(at);
}
__device__ inline float half_at(const std::byte* at) { return __half2float(read<__half>(at)); }

// Eight bytes, or the nibbles of eight bytes, as numbers.
struct Bytes8 {
  uint2 words;
  __device__ unsigned at(int i) const { return (i < 4 ? words.x : words.y) >> (i % 4 * 8) & 255u; }
};
__device__ inline Bytes8 bytes8(const std::byte* at) { return {read<uint2>(at)}; }

// Columns [8 c, 8 c + 8) of a row whose width is a multiple of 8.
template <DType format>
__device__ void unpack8(const WeightView& w, int64_t row, int64_t c, float (&v)[8]) {
  const std::byte* const panel = w.panel(row);
  const int64_t lane = row % kPanelRows, column = c * 8;
  if constexpr (format == DType::f32) {
    load8(reinterpret_cast<const float*>(panel) + lane * w.k + column, v);
  } else if constexpr (format == DType::f16) {
    load8(reinterpret_cast<const __half*>(panel) + lane * w.k + column, v);
  } else if constexpr (format == DType::bf16) {
    load8(reinterpret_cast<const __nv_bfloat16*>(panel) + lane * w.k + column, v);
  } else if constexpr (format == DType::q8_0) {
    const float scale = half_at(panel + kPanelRows * w.k + (lane * (w.k / 32) + column / 32) * 2);
    const Bytes8 codes = bytes8(panel + lane * w.k + column);
    for (int i = 0; i < 8; i++) v[i] = float(int8_t(codes.at(i))) * scale;
  } else if constexpr (format == DType::q4_0 || format == DType::q4_1) {
    constexpr bool minimum = format == DType::q4_1;
    constexpr int64_t kHead = minimum ? 4 : 2;
    const std::byte* const head =
        panel + kPanelRows * w.k / 2 + (lane * (w.k / 32) + column / 32) * kHead;
    const float scale = half_at(head), least = minimum ? half_at(head + 2) : -8 * scale;
    const Bytes8 codes = bytes8(panel + lane * w.k / 2 + column / 32 * 16 + column % 16);
    const int shift = column % 32 < 16 ? 0 : 4;
    for (int i = 0; i < 8; i++) v[i] = fmaf(float(codes.at(i) >> shift & 15u), scale, least);
  } else if constexpr (format == DType::q4_k) {
    const std::byte* const block = panel + (lane * (w.k / 256) + column / 256) * 144;
    const int inside = int(column % 256), part = inside / 32;
    // Six bits each: the first four pairs in bytes 0-3 and 4-7, the others spread over all twelve.
    const std::byte* const packed = block + 4 + part % 4;
    const unsigned low = read<uint8_t>(packed), middle = read<uint8_t>(packed + 4),
                   high = read<uint8_t>(packed + 8);
    const unsigned factor = part < 4 ? low & 63u : (high & 15u) | (low >> 6) << 4;
    const unsigned least = part < 4 ? middle & 63u : high >> 4 | (middle >> 6) << 4;
    const float scale = half_at(block) * float(factor);
    const float offset = -half_at(block + 2) * float(least);
    const Bytes8 codes = bytes8(block + 16 + inside / 64 * 32 + inside % 32);
    const int shift = part % 2 * 4;
    for (int i = 0; i < 8; i++) v[i] = fmaf(float(codes.at(i) >> shift & 15u), scale, offset);
  } else if constexpr (format == DType::q6_k) {
    const Q6kSections at(w.k);
    const int inside = int(column % 256), half = inside / 128, quarter = inside % 128 / 32;
    const int64_t block = lane * (w.k / 256) + column / 256;
    const Bytes8 low = bytes8(panel + block * 128 + half * 64 + quarter % 2 * 32 + inside % 32);
    const Bytes8 high = bytes8(panel + at.high + block * 64 + half * 32 + inside % 32);
    const float scale = half_at(panel + at.scale + block * 2) *
                        float(read<int8_t>(panel + at.factor + block * 16 + inside / 16));
    for (int i = 0; i < 8; i++) {
      const unsigned code =
          (low.at(i) >> (quarter / 2 * 4) & 15u) | (high.at(i) >> (2 * quarter) & 3u) << 4;
      v[i] = float(int(code) - 32) * scale;
    }
  }
}

// One element; plain formats of any width.
template <DType format>
__device__ float weight_at(const WeightView& w, int64_t row, int64_t column) {
  const int64_t at = row % kPanelRows * w.k + column;
  if constexpr (format == DType::f32) return reinterpret_cast<const float*>(w.panel(row))[at];
  if constexpr (format == DType::f16)
    return to_float(reinterpret_cast<const __half*>(w.panel(row))[at]);
  if constexpr (format == DType::bf16)
    return to_float(reinterpret_cast<const __nv_bfloat16*>(w.panel(row))[at]);
  float v[8];
  unpack8<format>(w, row, column / 8, v);
  return v[column % 8];
}

// Calls f<format>() for the weight's format, which is of blocks; or of any kind.
template <class F>
cudaError_t with_blocks(DType format, const F& f) {
  switch (format) {
    case DType::q8_0:
      return f.template operator()<DType::q8_0>();
    case DType::q4_0:
      return f.template operator()<DType::q4_0>();
    case DType::q4_1:
      return f.template operator()<DType::q4_1>();
    case DType::q4_k:
      return f.template operator()<DType::q4_k>();
    case DType::q6_k:
      return f.template operator()<DType::q6_k>();
    default:
      return cudaErrorInvalidValue;
  }
}
template <class F>
cudaError_t with_format(DType format, const F& f) {
  switch (format) {
    case DType::f32:
      return f.template operator()<DType::f32>();
    case DType::f16:
      return f.template operator()<DType::f16>();
    case DType::bf16:
      return f.template operator()<DType::bf16>();
    default:
      return with_blocks(format, f);
  }
}

}  // namespace hydrant::cuda
