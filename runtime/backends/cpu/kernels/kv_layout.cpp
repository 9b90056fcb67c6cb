#include "runtime/backends/cpu/kernels/kv_layout.hpp"

#include <cstring>

#include "runtime/base/error.hpp"
#include "runtime/base/half.hpp"

namespace hydrant::cpu {
namespace {

// Where component e of a slot lies: base + e_pair * outer + (e % pair) * inner, in bytes.
// Everything below is this one address computation.
struct Strided {
  std::byte* at;
  size_t outer, inner;
  int group;  // components that share one outer step

  std::byte* operator[](int32_t e) const {
    return at + size_t(e / group) * outer + size_t(e % group) * inner;
  }
};

std::byte* run_of(const KvLayout& layout, std::byte* head, int64_t slot) {
  return head + size_t(slot / kRunSlots) * layout.run_bytes();
}

Strided key_at(const KvLayout& layout, std::byte* head, int64_t slot) {
  const size_t lane = size_t(slot % kRunSlots), element = layout.element_bytes();
  std::byte* const run = run_of(layout, head, slot);
  if (layout.dtype == DType::bf16) return {run + lane * 4, kRunSlots * 4, 2, 2};
  return {run + lane * element, kRunSlots * element, 0, 1};
}

Strided value_at(const KvLayout& layout, std::byte* head, int64_t slot) {
  const size_t lane = size_t(slot % kRunSlots), element = layout.element_bytes();
  std::byte* const values = run_of(layout, head, slot) + layout.values_offset();
  if (layout.dtype == DType::bf16)
    return {values + lane / 2 * size_t(layout.head_dim) * 4 + lane % 2 * 2, 4, 0, 1};
  return {values + lane * size_t(layout.head_dim) * element, element, 0, 1};
}

template <class T>
void store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}
template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

void put(const KvLayout& layout, const Strided& to, const float* from) {
  for (int32_t e = 0; e < layout.head_dim; e++) switch (layout.dtype) {
      case DType::f32:
        store(to[e], from[e]);
        break;
      case DType::f16:
        store(to[e], f32_to_f16(from[e]));
        break;
      default:
        store(to[e], f32_to_bf16(from[e]));
    }
}

void get(const KvLayout& layout, const Strided& from, float* to) {
  for (int32_t e = 0; e < layout.head_dim; e++) switch (layout.dtype) {
      case DType::f32:
        to[e] = load<float>(from[e]);
        break;
      case DType::f16:
        to[e] = f16_to_f32(load<uint16_t>(from[e]));
        break;
      default:
        to[e] = bf16_to_f32(load<uint16_t>(from[e]));
    }
}

// `count` words, each `stride` bytes behind the one before.
template <class Word>
void copy_words(const std::byte* from, std::byte* to, size_t stride, int32_t count) {
  for (size_t at = 0; count > 0; count--, at += stride) store(to + at, load<Word>(from + at));
}

// One half of each of `count` 32-bit words, the other half staying as it is: vectors of words,
// where 16-bit stores would go one by one.
void copy_halves(const std::byte* from, size_t from_odd, std::byte* to, size_t to_odd,
                 int32_t count) {
  const uint32_t from_shift = uint32_t(from_odd) * 16, to_shift = uint32_t(to_odd) * 16;
  const uint32_t stays = to_odd ? 0x0000ffffu : 0xffff0000u;
  for (size_t at = 0; count > 0; count--, at += sizeof(uint32_t)) {
    const uint32_t half = load<uint32_t>(from + at) >> from_shift & 0xffffu;
    store(to + at, (load<uint32_t>(to + at) & stays) | half << to_shift);
  }
}

std::byte* writable(const std::byte* head) { return const_cast<std::byte*>(head); }

}  // namespace

size_t kv_run_bytes(DType dtype, int32_t head_dim) {
  ensure(dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16,
         "keys and values are kept in f32, f16 or bf16, not in {}", name(dtype));
  ensure(head_dim > 0 && head_dim % 8 == 0, "head_dim {} is not a positive multiple of 8",
         head_dim);
  return KvLayout{dtype, head_dim}.run_bytes();
}

void put_key(const KvLayout& layout, std::byte* head, int64_t slot, const float* key) {
  put(layout, key_at(layout, head, slot), key);
}
void put_value(const KvLayout& layout, std::byte* head, int64_t slot, const float* value) {
  put(layout, value_at(layout, head, slot), value);
}
void get_key(const KvLayout& layout, const std::byte* head, int64_t slot, float* key) {
  get(layout, key_at(layout, writable(head), slot), key);
}
void get_value(const KvLayout& layout, const std::byte* head, int64_t slot, float* value) {
  get(layout, value_at(layout, writable(head), slot), value);
}

void copy_key(const KvLayout& layout, const std::byte* from_head, int64_t from_slot,
              std::byte* to_head, int64_t to_slot) {
  const Strided from = key_at(layout, writable(from_head), from_slot),
                to = key_at(layout, to_head, to_slot);
  if (layout.dtype == DType::f16)
    copy_words<uint16_t>(from.at, to.at, from.outer, layout.head_dim);
  else  // one f32 or a pair of bf16
    copy_words<uint32_t>(from.at, to.at, from.outer, layout.head_dim / from.group);
}

void copy_value(const KvLayout& layout, const std::byte* from_head, int64_t from_slot,
                std::byte* to_head, int64_t to_slot) {
  const Strided from = value_at(layout, writable(from_head), from_slot),
                to = value_at(layout, to_head, to_slot);
  if (layout.dtype == DType::bf16)
    copy_halves(from.at - from_slot % 2 * 2, size_t(from_slot % 2), to.at - to_slot % 2 * 2,
                size_t(to_slot % 2), layout.head_dim);
  else
    std::memmove(to.at, from.at, size_t(layout.head_dim) * layout.element_bytes());
}

void copy_slot(const KvLayout& layout, const std::byte* from_head, int64_t from_slot,
               std::byte* to_head, int64_t to_slot) {
  copy_key(layout, from_head, from_slot, to_head, to_slot);
  copy_value(layout, from_head, from_slot, to_head, to_slot);
}

}  // namespace hydrant::cpu
