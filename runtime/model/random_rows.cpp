#include "runtime/model/random_rows.hpp"

#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/base/half.hpp"
#include "runtime/base/rng.hpp"

namespace hydrant {
namespace {

constexpr float kDeviation = 0.02f, kSqrt3 = 1.7320508f;

// The 65,536 values that a random half stands for, uniform within +-sqrt(3) deviations.
float value_of(uint16_t random) {
  return (float(random) - 32767.5f) * (kDeviation * kSqrt3 / 32768);
}
using Table = std::vector<uint16_t>;  // of them in f16 or bf16
Table table_of(uint16_t (*rounded)(float)) {
  Table table(1 << 16);
  for (size_t i = 0; i < table.size(); i++) table[i] = rounded(value_of(uint16_t(i)));
  return table;
}

// The scales with which uniform codes have the deviation.
constexpr float kScaleQ8 = kDeviation * kSqrt3 / 128, kScaleQ4 = kDeviation * kSqrt3 / 8;

// FNV-1a.
uint32_t stream_of(std::string_view name) {
  uint32_t hash = 2166136261u;
  for (const char c : name)
    if (c < '0' || c > '9') hash = (hash ^ uint8_t(c)) * 16777619u;
  return hash;
}

class RandomRows {
 public:
  RandomRows(std::unordered_set<std::string> ones, uint64_t seed)
      : ones_(std::move(ones)), seed_(seed) {}

  void make(const StoredTensor& t, int64_t first, int64_t count, std::byte* to) const {
    const auto bytes = size_t(row_bytes(*t.dtype, t.columns));
    const bool one = ones_.contains(t.name);
    const uint32_t stream = stream_of(t.name);
    std::vector<uint16_t> random(one ? 0 : size_t(t.columns + 7) / 8 * 8);
    for (int64_t row = first; row < first + count; row++, to += bytes) {
      if (one) {
        fill_ones(*t.dtype, t.columns, to);
      } else {
        draw(stream, uint64_t(row), random);
        fill(*t.dtype, t.columns, random, to);
      }
    }
  }

 private:
  void draw(uint32_t stream, uint64_t row, std::span<uint16_t> random) const {
    for (size_t i = 0; i < random.size(); i += 8) {
      const auto words = philox({uint32_t(i), uint32_t(row), uint32_t(row >> 32), stream},
                                {uint32_t(seed_), uint32_t(seed_ >> 32)});
      std::memcpy(&random[i], words.data(), sizeof words);
    }
  }

  void fill(DType dtype, int64_t columns, std::span<const uint16_t> random, std::byte* to) const {
    const auto blocks = [&](float scale, size_t codes) {
      const uint16_t half = f32_to_f16(scale);
      const auto* code = reinterpret_cast<const std::byte*>(random.data());
      for (int64_t i = 0; i < columns / block_elements(dtype); i++, code += codes) {
        std::memcpy(to + size_t(i) * (2 + codes), &half, 2);
        std::memcpy(to + size_t(i) * (2 + codes) + 2, code, codes);
      }
    };
    const auto halves = [&](const Table& table) {
      for (int64_t i = 0; i < columns; i++) std::memcpy(to + 2 * i, &table[random[size_t(i)]], 2);
    };
    switch (dtype) {
      case DType::f32:
        for (int64_t i = 0; i < columns; i++) {
          const float value = value_of(random[size_t(i)]);
          std::memcpy(to + 4 * i, &value, 4);
        }
        return;
      case DType::f16:
        return halves(f16_);
      case DType::bf16:
        return halves(bf16_);
      case DType::q8_0:
        return blocks(kScaleQ8, 32);
      case DType::q4_0:
        return blocks(kScaleQ4, 16);
      default:
        fail(Fault::internal, "random numbers in {}", name(dtype));
    }
  }

  static void fill_ones(DType dtype, int64_t columns, std::byte* to) {
    const float one = 1;
    const uint16_t half = dtype == DType::f16 ? f32_to_f16(one) : f32_to_bf16(one);
    for (int64_t i = 0; i < columns; i++)
      if (dtype == DType::f32)
        std::memcpy(to + 4 * i, &one, 4);
      else
        std::memcpy(to + 2 * i, &half, 2);
  }

  std::unordered_set<std::string> ones_;
  uint64_t seed_;
  Table f16_ = table_of(f32_to_f16), bf16_ = table_of(f32_to_bf16);
};

}  // namespace

MakeRows random_rows(std::unordered_set<std::string> ones, uint64_t seed) {
  const auto rows = std::make_shared<const RandomRows>(std::move(ones), seed);
  return [rows](const StoredTensor& t, int64_t first, int64_t count, std::byte* to) {
    rows->make(t, first, count, to);
  };
}

}  // namespace hydrant
