#include "runtime/backends/cpu/kernels/pack.hpp"

#include <immintrin.h>

#include <cstring>

#include "runtime/backends/cpu/kernels/panel_layout.hpp"
#include "runtime/base/error.hpp"

namespace hydrant::cpu {
namespace {

constexpr size_t kRows = size_t(kPanelRows);

uint32_t word_at(const std::byte* p) {
  uint32_t w;
  memcpy(&w, p, sizeof w);
  return w;
}
void put_word(std::byte* p, uint32_t w) { memcpy(p, &w, sizeof w); }

// out[i][row] = in[i] for elements of `bytes`, the last one cut off after `in_bytes`
void spread(const std::byte* in, size_t in_bytes, size_t bytes, size_t row, std::byte* out) {
  out += row * bytes;
  for (; in_bytes >= bytes; in_bytes -= bytes, in += bytes, out += kRows * bytes)
    memcpy(out, in, bytes);
  memcpy(out, in, in_bytes);
}

__m128i load16(const std::byte* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}
void store16(std::byte* to, __m128i value) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), value);
}

// Weights at home in the file are packed again in every step, so whole panels of plain elements go
// through registers: squares of 16 bytes of four (eight) rows are turned over, and each line of the
// panel is written once. Returns how many bytes of each row that did.
size_t turn_words(const std::byte* const* rows, size_t row_bytes, std::byte* out) {
  size_t at = 0;
  for (; at + 16 <= row_bytes; at += 16, out += 4 * kRows * 4)
    for (size_t row = 0; row < kRows; row += 4) {
      const __m128i a = load16(rows[row] + at), b = load16(rows[row + 1] + at),
                    c = load16(rows[row + 2] + at), d = load16(rows[row + 3] + at);
      const __m128i ab0 = _mm_unpacklo_epi32(a, b), ab2 = _mm_unpackhi_epi32(a, b),
                    cd0 = _mm_unpacklo_epi32(c, d), cd2 = _mm_unpackhi_epi32(c, d);
      std::byte* const to = out + row * 4;
      store16(to, _mm_unpacklo_epi64(ab0, cd0));
      store16(to + kRows * 4, _mm_unpackhi_epi64(ab0, cd0));
      store16(to + kRows * 8, _mm_unpacklo_epi64(ab2, cd2));
      store16(to + kRows * 12, _mm_unpackhi_epi64(ab2, cd2));
    }
  return at;
}
size_t turn_halves(const std::byte* const* rows, size_t row_bytes, std::byte* out) {
  size_t at = 0;
  for (; at + 16 <= row_bytes; at += 16, out += 8 * kRows * 2)
    for (size_t row = 0; row < kRows; row += 8) {
      __m128i in[8], pairs[8];
      for (size_t i = 0; i < 8; i++) in[i] = load16(rows[row + i] + at);
      for (size_t i = 0; i < 4; i++) {  // elements 0-3, then 4-7, of rows 2 i and 2 i + 1
        pairs[i] = _mm_unpacklo_epi16(in[2 * i], in[2 * i + 1]);
        pairs[4 + i] = _mm_unpackhi_epi16(in[2 * i], in[2 * i + 1]);
      }
      std::byte* to = out + row * 2;
      for (size_t half = 0; half < 8; half += 4) {
        const __m128i *p = pairs + half, ab0 = _mm_unpacklo_epi32(p[0], p[1]),
                      ab2 = _mm_unpackhi_epi32(p[0], p[1]), cd0 = _mm_unpacklo_epi32(p[2], p[3]),
                      cd2 = _mm_unpackhi_epi32(p[2], p[3]);
        for (const __m128i line : {_mm_unpacklo_epi64(ab0, cd0), _mm_unpackhi_epi64(ab0, cd0),
                                   _mm_unpacklo_epi64(ab2, cd2), _mm_unpackhi_epi64(ab2, cd2)}) {
          store16(to, line);
          to += kRows * 2;
        }
      }
    }
  return at;
}

// Elements of `bytes` each; bf16 goes in pairs of them.
void pack_plain(DType format, int64_t k, std::span<const std::byte* const> rows, std::byte* panel) {
  const size_t bytes = format == DType::f16 ? 2 : 4, in_bytes = size_t(row_bytes(format, k));
  const bool whole = rows.size() == kRows;
  const size_t turned = !whole       ? 0
                        : bytes == 2 ? turn_halves(rows.data(), in_bytes, panel)
                                     : turn_words(rows.data(), in_bytes, panel);
  std::byte* const rest = panel + turned * kRows;
  memset(rest, 0, panel_bytes(format, k) - turned * kRows);
  for (size_t row = 0; row < rows.size(); row++)
    spread(rows[row] + turned, in_bytes - turned, bytes, row, rest);
}

// One row's blocks of 32 in turn: where the block lies in the file, its head and codes in the
// panel.
template <class Body>
void each_block(DType format, int64_t k, const std::byte* in, std::byte* panel, const Body& body) {
  const BlockLayout layout = block_layout(format);
  const int64_t per_file_block = block_elements(format) / kBlock;
  for (int64_t b = 0; b < k / kBlock; b++)
    body(in + b / per_file_block * block_bytes(format), b, panel + layout.head(b),
         panel + layout.codes(b));
}

void pack_q8_0(int64_t k, const std::byte* in, size_t row, std::byte* panel) {
  each_block(DType::q8_0, k, in, panel,
             [&](const std::byte* block, int64_t b, std::byte* head, std::byte* codes) {
               memcpy(head + b % 2 * 32 + row * 2, block, 2);
               for (size_t quad = 0; quad < 8; quad++)
                 put_word(codes + quad * 64 + row * 4, word_at(block + 2 + quad * 4) ^ 0x80808080u);
             });
}

// Byte i of a file's block holds k = i and k = i + 16: already the halves that a panel wants.
void pack_q4(DType format, int64_t k, const std::byte* in, size_t row, std::byte* panel) {
  const bool minimum = format == DType::q4_1;
  each_block(format, k, in, panel,
             [&](const std::byte* block, int64_t b, std::byte* head, std::byte* codes) {
               memcpy(head + (minimum ? 0 : b % 2 * 32) + row * 2, block, 2);
               if (minimum) memcpy(head + 32 + row * 2, block + 2, 2);
               block += minimum ? 4 : 2;
               for (size_t line = 0; line < 4; line++)
                 memcpy(codes + line * 64 + row * 4, block + line * 4, 4);
             });
}

// Eight pairs of 6-bit factors in 12 bytes: the first four pairs in the low 6 bits of bytes 0-3 and
// 4-7, the others in the nibbles of bytes 8-11 with their high 2 bits on top of bytes 0-7.
void q4_k_factors(const std::byte* packed, int64_t b, std::byte* scale, std::byte* minimum) {
  const std::byte* low = packed + b % 4;
  if (b < 4) {
    *scale = low[0] & std::byte{63};
    *minimum = low[4] & std::byte{63};
  } else {
    *scale = (low[8] & std::byte{15}) | (low[0] >> 6) << 4;
    *minimum = low[8] >> 4 | (low[4] >> 6) << 4;
  }
}

void pack_q4_k(int64_t k, const std::byte* in, size_t row, std::byte* panel) {
  each_block(DType::q4_k, k, in, panel,
             [&](const std::byte* block, int64_t b, std::byte* head, std::byte* codes) {
               b %= 8;
               memcpy(head + row * 2, block, 2);
               memcpy(head + 32 + row * 2, block + 2, 2);
               head[32 + row * 2 + 1] ^= std::byte{0x80};  // the file's minimum is to be taken away
               std::byte* factors = head + kFactors + b * 32 + row;
               q4_k_factors(block + 4, b, factors, factors + 16);
               // 32 bytes hold two blocks, one in each half of every byte
               const std::byte* nibbles = block + 16 + b / 2 * 32;
               const int shift = int(b % 2) * 4;
               for (size_t line = 0; line < 4; line++) {
                 const uint32_t first = word_at(nibbles + line * 4) >> shift & 0x0f0f0f0fu;
                 const uint32_t second = word_at(nibbles + 16 + line * 4) >> shift & 0x0f0f0f0fu;
                 put_word(codes + line * 64 + row * 4, first | second << 4);
               }
             });
}

void pack_q6_k(int64_t k, const std::byte* in, size_t row, std::byte* panel) {
  each_block(DType::q6_k, k, in, panel,
             [&](const std::byte* block, int64_t b, std::byte* head, std::byte* codes) {
               b %= 8;
               memcpy(head + row * 2, block + 208, 2);
               std::byte* factors = head + kFactors + b * 32 + row;
               factors[0] = block[192 + 2 * b];
               factors[16] = block[192 + 2 * b + 1];
               // Half of 256 elements: 64 bytes of nibbles (low: blocks 0 and 1, high: 2 and 3) and
               // 32 bytes of two bits for each of the four blocks.
               const std::byte* nibbles = block + b / 4 * 64 + b % 2 * 32;
               const std::byte* pairs = block + 128 + b / 4 * 32;
               const int shift = int(b / 2 % 2) * 4, pair = int(b % 4) * 2;
               uint32_t high[2] = {0, 0};
               for (size_t quad = 0; quad < 8; quad++) {
                 const uint32_t low = word_at(nibbles + quad * 4) >> shift & 0x0f0f0f0fu;
                 const uint32_t two = word_at(pairs + quad * 4) >> pair & 0x03030303u;
                 std::byte* line = codes + quad % 4 * 64 + row * 4;
                 put_word(line, quad < 4 ? low : word_at(line) | low << 4);
                 high[quad / 4] |= two << (quad % 4 * 2);
               }
               for (size_t h = 0; h < 2; h++) put_word(codes + 256 + h * 64 + row * 4, high[h]);
             });
}

}  // namespace

size_t panel_bytes(DType format, int64_t k) {
  ensure(k > 0 && k % block_elements(format) == 0, "a {} panel of k = {}", name(format), k);
  if (is_quantised(format)) return block_layout(format).panel_bytes(k / kBlock);
  const int64_t padded = format == DType::bf16 ? align_up<int64_t>(k, 2) : k;
  return align_up(size_t(padded * block_bytes(format)) * kRows, size_t{64});
}

void pack_panel(DType format, int64_t k, std::span<const std::byte* const> rows, std::byte* panel) {
  ensure(rows.size() <= kRows, "{} rows for a panel of {}", rows.size(), kRows);
  if (format == DType::f32 || format == DType::f16 || format == DType::bf16)
    return pack_plain(format, k, rows, panel);
  if (rows.size() < kRows) memset(panel, 0, panel_bytes(format, k));
  for (size_t row = 0; row < rows.size(); row++) {
    switch (format) {
      case DType::q8_0:
        pack_q8_0(k, rows[row], row, panel);
        break;
      case DType::q4_0:
      case DType::q4_1:
        pack_q4(format, k, rows[row], row, panel);
        break;
      case DType::q4_k:
        pack_q4_k(k, rows[row], row, panel);
        break;
      case DType::q6_k:
        pack_q6_k(k, rows[row], row, panel);
        break;
      default:
        fail(Fault::internal, "{} is no format of weights", name(format));
    }
  }
}

}  // namespace hydrant::cpu
