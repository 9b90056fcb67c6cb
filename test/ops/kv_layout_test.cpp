#include "runtime/backends/cpu/kernels/kv_layout.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/base/half.hpp"

using namespace hydrant;
using namespace hydrant::cpu;

namespace {

// A different number for each (slot, component, key or value), exact in every dtype.
float mark(int64_t slot, int32_t e, bool value) {
  return float((slot * 37 + e * 3 + (value ? 101 : 0)) % 253 - 126);
}

struct Head {
  Head(KvLayout l, int64_t slots) : layout(l), bytes(size_t(slots) / 16 * l.run_bytes()) {}
  KvLayout layout;
  std::vector<std::byte> bytes;
};

std::vector<float> row(const Head& head, int64_t slot, bool value) {
  std::vector<float> out(size_t(head.layout.head_dim));
  (value ? get_value : get_key)(head.layout, head.bytes.data(), slot, out.data());
  return out;
}
std::vector<float> marks(int32_t head_dim, int64_t slot, bool value) {
  std::vector<float> out;
  for (int32_t e = 0; e < head_dim; e++) out.push_back(mark(slot, e, value));
  return out;
}

void encode(DType dtype, const std::vector<float>& row, std::byte* to) {
  for (size_t i = 0; i < row.size(); i++) {
    const uint16_t half = dtype == DType::f16 ? f32_to_f16(row[i]) : f32_to_bf16(row[i]);
    if (dtype == DType::f32)
      std::memcpy(to + i * 4, &row[i], 4);
    else
      std::memcpy(to + i * 2, &half, 2);
  }
}

const DType kDtypes[] = {DType::f32, DType::f16, DType::bf16};

}  // namespace

TEST_CASE("what is put into a slot is read back from it, and only there") {
  for (const DType dtype : kDtypes)
    for (const int32_t d : {8, 24, 64, 80, 96, 128}) {
      Head head({dtype, d}, 48);
      for (int64_t slot = 0; slot < 48; slot++) {
        put_key(head.layout, head.bytes.data(), slot, marks(d, slot, false).data());
        put_value(head.layout, head.bytes.data(), slot, marks(d, slot, true).data());
      }
      for (int64_t slot = 0; slot < 48; slot++)  // nobody has overwritten a neighbour
        for (const bool value : {false, true})
          if (row(head, slot, value) != marks(d, slot, value))
            FAIL(name(dtype) << " d " << d << " slot " << slot << " value " << value);
    }
}

TEST_CASE("every byte of a run belongs to exactly one element") {
  for (const DType dtype : kDtypes) {
    Head head({dtype, 24}, 16);
    std::memset(head.bytes.data(), 0xff, head.bytes.size());
    const std::vector<float> zero(24, 0.0f);
    for (int64_t slot = 0; slot < 16; slot++) {
      put_key(head.layout, head.bytes.data(), slot, zero.data());
      put_value(head.layout, head.bytes.data(), slot, zero.data());
    }
    CHECK(head.bytes == std::vector<std::byte>(head.bytes.size()));
    CHECK(head.bytes.size() == size_t(2 * 16 * 24) * (dtype == DType::f32 ? 4 : 2));
  }
}

TEST_CASE("the products' views of a run: keys by lane, values by row or pair of rows") {
  const int32_t d = 24;
  for (const DType dtype : kDtypes) {
    Head head({dtype, d}, 16);
    for (int64_t slot = 0; slot < 16; slot++) {
      put_key(head.layout, head.bytes.data(), slot, marks(d, slot, false).data());
      put_value(head.layout, head.bytes.data(), slot, marks(d, slot, true).data());
    }
    const auto at = [&](size_t element) {
      if (dtype == DType::f32) return reinterpret_cast<const float*>(head.bytes.data())[element];
      const uint16_t h = reinterpret_cast<const uint16_t*>(head.bytes.data())[element];
      return dtype == DType::f16 ? f16_to_f32(h) : bf16_to_f32(h);
    };
    for (size_t slot = 0; slot < 16; slot++)
      for (size_t e = 0; e < size_t(d); e++) {
        const bool pairs = dtype == DType::bf16;
        const size_t key = pairs ? e / 2 * 32 + slot * 2 + e % 2 : e * 16 + slot;
        const size_t value = pairs ? slot / 2 * 48 + e * 2 + slot % 2 : slot * 24 + e;
        REQUIRE(at(key) == mark(int64_t(slot), int32_t(e), false));
        REQUIRE(at(16 * 24 + value) == mark(int64_t(slot), int32_t(e), true));
      }
  }
}

TEST_CASE("many keys and values at once are the same bytes as one at a time") {
  for (const DType dtype : kDtypes)
    for (const int32_t d : {8, 24, 64, 80, 128})
      for (const int64_t first : {0, 5, 16, 31})
        for (const int64_t count : {1, 2, 3, 16, 47}) {
          const KvLayout layout{dtype, d};
          const size_t row_size = size_t(d) * layout.element_bytes();
          std::vector<std::byte> keys(size_t(count) * row_size), values(keys);
          Head bulk(layout, 96), single(layout, 96);
          for (size_t i = 0; i < bulk.bytes.size(); i++)  // neighbours must keep their bits
            bulk.bytes[i] = single.bytes[i] = std::byte(i * 7);
          for (int64_t i = 0; i < count; i++) {
            const auto key = marks(d, i, false), value = marks(d, i, true);
            put_key(layout, single.bytes.data(), first + i, key.data());
            put_value(layout, single.bytes.data(), first + i, value.data());
            encode(dtype, key, keys.data() + size_t(i) * row_size);
            encode(dtype, value, values.data() + size_t(i) * row_size);
          }
          put_keys(layout, bulk.bytes.data(), first, count, keys.data());
          put_values(layout, bulk.bytes.data(), first, count, values.data());
          if (bulk.bytes != single.bytes)
            FAIL(name(dtype) << " d " << d << " first " << first << " count " << count);
        }
}

TEST_CASE("copy_slot copies bits, between heads and inside one, and nothing else") {
  for (const DType dtype : kDtypes)
    for (const int32_t d : {8, 24, 80}) {
      Head from({dtype, d}, 48), to({dtype, d}, 48);
      for (size_t i = 0; i < from.bytes.size(); i++)  // any bits, NaNs included
        from.bytes[i] = std::byte(i * 131 + i / 251);
      for (const auto& [source, target] : {std::pair{0, 47}, {17, 2}, {33, 33}, {15, 16}}) {
        Head expected = to;
        copy_slot(from.layout, from.bytes.data(), source, to.bytes.data(), target);
        const auto bits = [](const std::vector<float>& row) {
          std::vector<uint32_t> out(row.size());
          std::memcpy(out.data(), row.data(), row.size() * 4);
          return out;
        };
        for (const bool value : {false, true}) {
          CHECK(bits(row(to, target, value)) == bits(row(from, source, value)));
          for (int slot = 0; slot < 48; slot++)
            if (slot != target && bits(row(to, slot, value)) != bits(row(expected, slot, value)))
              FAIL(name(dtype) << " d " << d << ": slot " << slot << " changed too");
        }
      }
      copy_slot(from.layout, from.bytes.data(), 20, from.bytes.data(), 3);
      copy_slot(from.layout, from.bytes.data(), 20, to.bytes.data(), 3);
      Head again = to;
      copy_slot(from.layout, from.bytes.data(), 3, again.bytes.data(), 3);
      CHECK(again.bytes == to.bytes);
    }
}

TEST_CASE("kv_run_bytes refuses what no run can hold") {
  CHECK(kv_run_bytes(DType::bf16, 64) == 4096);
  CHECK(kv_run_bytes(DType::f16, 24) == 1536);
  CHECK(kv_run_bytes(DType::f32, 8) == 1024);
  CHECK_THROWS_AS(kv_run_bytes(DType::q8_0, 64), Error);
  CHECK_THROWS_AS(kv_run_bytes(DType::i32, 64), Error);
  CHECK_THROWS_AS(kv_run_bytes(DType::f32, 0), Error);
  CHECK_THROWS_AS(kv_run_bytes(DType::f32, 12), Error);
}
