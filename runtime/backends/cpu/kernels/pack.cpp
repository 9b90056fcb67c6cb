#include "runtime/backends/cpu/kernels/pack.hpp"

#include <immintrin.h>

#include <cstring>

#include "runtime/backends/cpu/kernels/panel_layout.hpp"
#include "runtime/base/error.hpp"

namespace hydrant::cpu {
namespace {

constexpr size_t kRows = size_t(kPanelRows);

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

// Weights at home in the file are packed again in every step, so panels go through registers:
// squares of 16 bytes of four (eight) rows are turned over, and each line of the panel is written
// once.

// Of four rows side by side.
struct Words {
  __m128i at[4];
};

// line(row): the row's 16 bytes. to(row, words): the four words of rows [row, row + 4), each word
// of the four rows side by side. All 16 rows; those from `count` on are zero.
template <class Line, class To>
void turn_square(size_t count, const Line& line, const To& to) {
  const auto at = [&](size_t row) { return row < count ? line(row) : _mm_setzero_si128(); };
  for (size_t row = 0; row < kRows; row += 4) {
    const __m128i a = at(row), b = at(row + 1), c = at(row + 2), d = at(row + 3);
    const __m128i ab0 = _mm_unpacklo_epi32(a, b), ab2 = _mm_unpackhi_epi32(a, b),
                  cd0 = _mm_unpacklo_epi32(c, d), cd2 = _mm_unpackhi_epi32(c, d);
    to(row, Words{{_mm_unpacklo_epi64(ab0, cd0), _mm_unpackhi_epi64(ab0, cd0),
                   _mm_unpacklo_epi64(ab2, cd2), _mm_unpackhi_epi64(ab2, cd2)}});
  }
}
// out[word][row]
template <class Line>
void turn(size_t count, const Line& line, std::byte* out) {
  turn_square(count, line, [out](size_t row, const Words& words) {
    for (size_t i = 0; i < 4; i++) store16(out + i * kRows * 4 + row * 4, words.at[i]);
  });
}

// These return how many bytes of each row they did.
size_t turn_words(const std::byte* const* rows, size_t row_bytes, std::byte* out) {
  size_t at = 0;
  for (; at + 16 <= row_bytes; at += 16, out += 4 * kRows * 4)
    turn(
        kRows, [&](size_t row) { return load16(rows[row] + at); }, out);
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

using Rows = std::span<const std::byte* const>;

// Blocks of 32 in turn. body(b, at, head, codes): at(row) is where the row's block of the file
// lies that holds block b; head and codes are the panel's.
template <class Body>
void each_block(DType format, int64_t k, const Rows& rows, std::byte* panel, const Body& body) {
  const BlockLayout layout = block_layout(format);
  const int64_t per_file_block = block_elements(format) / kBlock;
  for (int64_t b = 0; b < k / kBlock; b++) {
    const auto skip = size_t(b / per_file_block * block_bytes(format));
    body(
        b, [&rows, skip](size_t row) { return rows[row] + skip; }, panel + layout.head(b),
        panel + layout.codes(b));
  }
}

void pack_q8_0(int64_t k, const Rows& rows, std::byte* panel) {
  const __m128i zero = _mm_set1_epi8(int8_t(-128));  // codes are signed in the file
  each_block(
      DType::q8_0, k, rows, panel,
      [&](int64_t b, const auto& at, std::byte* head, std::byte* codes) {
        for (size_t row = 0; row < rows.size(); row++)
          memcpy(head + b % 2 * 32 + row * 2, at(row), 2);
        for (size_t half = 0; half < 2; half++)
          turn(
              rows.size(),
              [&](size_t row) { return _mm_xor_si128(load16(at(row) + 2 + half * 16), zero); },
              codes + half * 256);
      });
}

// Byte i of a file's block holds k = i and k = i + 16: already the halves that a panel wants.
void pack_q4(DType format, int64_t k, const Rows& rows, std::byte* panel) {
  const bool minimum = format == DType::q4_1;
  const size_t skip = minimum ? 4 : 2;
  each_block(format, k, rows, panel,
             [&](int64_t b, const auto& at, std::byte* head, std::byte* codes) {
               for (size_t row = 0; row < rows.size(); row++) {
                 memcpy(head + (minimum ? 0 : b % 2 * 32) + row * 2, at(row), 2);
                 if (minimum) memcpy(head + 32 + row * 2, at(row) + 2, 2);
               }
               turn(
                   rows.size(), [&](size_t row) { return load16(at(row) + skip); }, codes);
             });
}

// Bits [shift, shift + bits of the mask) of each of 16 bytes; shift is even and the mask's bits do
// not reach beyond the byte's.
__m128i part_of(const std::byte* from, int shift, uint8_t mask) {
  return _mm_and_si128(_mm_srl_epi16(load16(from), _mm_cvtsi32_si128(shift)),
                       _mm_set1_epi8(int8_t(mask)));
}
// Nibbles of 32 bytes, as the halves that a panel wants.
__m128i nibbles_of(const std::byte* from, int shift) {
  return _mm_or_si128(part_of(from, shift, 15), _mm_slli_epi16(part_of(from + 16, shift, 15), 4));
}

uint32_t word_at(const std::byte* p) {
  uint32_t w;
  memcpy(&w, p, sizeof w);
  return w;
}

// Eight pairs of 6-bit factors in 12 bytes: the first four pairs in the low 6 bits of bytes 0-3 and
// 4-7, the others in the nibbles of bytes 8-11 with their high 2 bits on top of bytes 0-7. To
// scale, minimum, scale ... of a row, `kRows` bytes from each other.
void q4_k_factors(const std::byte* packed, std::byte* out) {
  const uint32_t scales = word_at(packed), minima = word_at(packed + 4), low = word_at(packed + 8);
  const auto high = [](uint32_t w) { return (w >> 6 & 0x03030303u) << 4; };
  const uint32_t words[4] = {scales & 0x3f3f3f3fu, minima & 0x3f3f3f3fu,
                             (low & 0x0f0f0f0fu) | high(scales),
                             (low >> 4 & 0x0f0f0f0fu) | high(minima)};
  for (size_t b = 0; b < 8; b++)
    for (size_t which = 0; which < 2; which++)
      out[(2 * b + which) * kRows] = std::byte(words[b / 4 * 2 + which] >> b % 4 * 8);
}

void pack_q4_k(int64_t k, const Rows& rows, std::byte* panel) {
  each_block(DType::q4_k, k, rows, panel,
             [&](int64_t b, const auto& at, std::byte* head, std::byte* codes) {
               b %= 8;
               for (size_t row = 0; b == 0 && row < rows.size(); row++) {
                 memcpy(head + row * 2, at(row), 2);
                 memcpy(head + 32 + row * 2, at(row) + 2, 2);
                 head[32 + row * 2 + 1] ^= std::byte{0x80};  // the file's minimum is taken away
                 q4_k_factors(at(row) + 4, head + kFactors + row);
               }
               // 32 bytes hold two blocks, one in each half of every byte
               const auto skip = size_t(16 + b / 2 * 32);
               const int shift = int(b % 2) * 4;
               turn(
                   rows.size(), [&](size_t row) { return nibbles_of(at(row) + skip, shift); },
                   codes);
             });
}

void pack_q6_k(int64_t k, const Rows& rows, std::byte* panel) {
  each_block(DType::q6_k, k, rows, panel,
             [&](int64_t b, const auto& at, std::byte* head, std::byte* codes) {
               b %= 8;
               for (size_t row = 0; b == 0 && row < rows.size(); row++) {
                 memcpy(head + row * 2, at(row) + 208, 2);
                 for (size_t i = 0; i < 16; i++)
                   head[kFactors + i * kRows + row] = at(row)[192 + i];
               }
               // Half of 256 elements: 64 bytes of nibbles (low: blocks 0 and 1, high: 2 and 3) and
               // 32 bytes of two bits for each of the four blocks.
               const auto skip = size_t(b / 4 * 64 + b % 2 * 32);
               const int shift = int(b / 2 % 2) * 4, pair = int(b % 4) * 2;
               turn(
                   rows.size(), [&](size_t row) { return nibbles_of(at(row) + skip, shift); },
                   codes);
               for (size_t half = 0; half < 2; half++)
                 turn_square(
                     rows.size(),
                     [&](size_t row) {
                       return part_of(at(row) + 128 + size_t(b / 4 * 32) + half * 16, pair, 3);
                     },
                     [&](size_t row, const Words& quads) {
                       __m128i high = quads.at[0];
                       for (int q = 1; q < 4; q++)
                         high = _mm_or_si128(high, _mm_slli_epi16(quads.at[q], 2 * q));
                       store16(codes + 256 + half * 64 + row * 4, high);
                     });
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
  switch (format) {
    case DType::q8_0:
      return pack_q8_0(k, rows, panel);
    case DType::q4_0:
    case DType::q4_1:
      return pack_q4(format, k, rows, panel);
    case DType::q4_k:
      return pack_q4_k(k, rows, panel);
    case DType::q6_k:
      return pack_q6_k(k, rows, panel);
    default:
      fail(Fault::internal, "{} is no format of weights", name(format));
  }
}

}  // namespace hydrant::cpu
