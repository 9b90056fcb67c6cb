// What is inside one run of 16 slots on the CPU, and the only functions that write or move it.
//
// Keys come first, as a panel whose 16 lanes are slots, so that a query component is broadcast and
// no transposition is needed: f32, f16 [d][16]; bf16 [d/2][16][2], two components side by side for
// the pair dot product. Values follow: f32, f16 [16][d]; bf16 [8][d][2], two slots side by side,
// because there the product runs over slots. head_dim d is a multiple of 8.
#pragma once
#include <cstddef>
#include <cstdint>

#include "runtime/base/dtype.hpp"
#include "runtime/device/cache_view.hpp"

namespace hydrant::cpu {

struct KvLayout {
  DType dtype = DType::f32;  // f32, f16 or bf16
  int32_t head_dim = 0;

  size_t element_bytes() const { return dtype == DType::f32 ? 4 : 2; }
  size_t values_offset() const {  // of the values inside a run; half a run
    return size_t(kRunSlots) * size_t(head_dim) * element_bytes();
  }
  size_t run_bytes() const { return 2 * values_offset(); }
};

// Throws internal for other dtypes and for head_dim that is not a positive multiple of 8.
size_t kv_run_bytes(DType dtype, int32_t head_dim);

// `head` is the first run of one KV head: KvRuns::data + kv_head * KvRuns::head_bytes, runs one
// behind another. Values are rounded to nearest even; a NaN stays a NaN.
void put_key(const KvLayout& layout, std::byte* head, int64_t slot, const float* key);
void put_value(const KvLayout& layout, std::byte* head, int64_t slot, const float* value);
void get_key(const KvLayout& layout, const std::byte* head, int64_t slot, float* key);
void get_value(const KvLayout& layout, const std::byte* head, int64_t slot, float* value);

// `count` keys or values, already in the layout's dtype and one behind another, into slots first,
// first + 1, ...
void put_keys(const KvLayout& layout, std::byte* head, int64_t first, int64_t count,
              const std::byte* keys);
void put_values(const KvLayout& layout, std::byte* head, int64_t first, int64_t count,
                const std::byte* values);

// Copy a key, a value, or both, from slot to slot, bits untouched. The heads may be the same.
void copy_key(const KvLayout& layout, const std::byte* from_head, int64_t from_slot,
              std::byte* to_head, int64_t to_slot);
void copy_value(const KvLayout& layout, const std::byte* from_head, int64_t from_slot,
                std::byte* to_head, int64_t to_slot);
void copy_slot(const KvLayout& layout, const std::byte* from_head, int64_t from_slot,
               std::byte* to_head, int64_t to_slot);

}  // namespace hydrant::cpu
