// Keys and values in runs as the tested backend lays them out: for tests that fill caches and look
// into them. A run has the same bytes in both layouts.
#pragma once
#include <cstring>
#include <vector>

#include "runtime/backends/cpu/kernels/kv_layout.hpp"
#include "runtime/base/half.hpp"
#include "test/support/test_backend.hpp"

namespace hydrant::test {

constexpr bool keys_in_panels() { return test_backend() != "cuda"; }

// The device's layout: in a run the keys of 16 slots, one behind another, then their values.
inline const std::byte* element_of(const cpu::KvLayout& l, const std::byte* head, int64_t slot,
                                   bool value, int32_t e) {
  const size_t row = size_t(slot % kRunSlots) + (value ? size_t(kRunSlots) : 0);
  return head + size_t(slot / kRunSlots) * l.run_bytes() +
         (row * size_t(l.head_dim) + size_t(e)) * l.element_bytes();
}

inline void put_row(const cpu::KvLayout& l, std::byte* head, int64_t slot, bool value,
                    const float* from) {
  for (int32_t e = 0; e < l.head_dim; e++) {
    auto* const to = const_cast<std::byte*>(element_of(l, head, slot, value, e));
    const uint16_t half = l.dtype == DType::f16 ? f32_to_f16(from[e]) : f32_to_bf16(from[e]);
    std::memcpy(to, l.dtype == DType::f32 ? static_cast<const void*>(from + e) : &half,
                l.element_bytes());
  }
}

inline void get_row(const cpu::KvLayout& l, const std::byte* head, int64_t slot, bool value,
                    float* to) {
  for (int32_t e = 0; e < l.head_dim; e++) {
    const std::byte* const from = element_of(l, head, slot, value, e);
    uint16_t half = 0;
    if (l.dtype == DType::f32) {
      std::memcpy(to + e, from, 4);
      continue;
    }
    std::memcpy(&half, from, 2);
    to[e] = l.dtype == DType::f16 ? f16_to_f32(half) : bf16_to_f32(half);
  }
}

inline void write_key(const cpu::KvLayout& l, std::byte* head, int64_t slot, const float* key) {
  keys_in_panels() ? cpu::put_key(l, head, slot, key) : put_row(l, head, slot, false, key);
}
inline void write_value(const cpu::KvLayout& l, std::byte* head, int64_t slot, const float* value) {
  keys_in_panels() ? cpu::put_value(l, head, slot, value) : put_row(l, head, slot, true, value);
}
inline void read_key(const cpu::KvLayout& l, const std::byte* head, int64_t slot, float* key) {
  keys_in_panels() ? cpu::get_key(l, head, slot, key) : get_row(l, head, slot, false, key);
}
inline void read_value(const cpu::KvLayout& l, const std::byte* head, int64_t slot, float* value) {
  keys_in_panels() ? cpu::get_value(l, head, slot, value) : get_row(l, head, slot, true, value);
}

}  // namespace hydrant::test
