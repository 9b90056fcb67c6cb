#include "runtime/model/gguf_tensors.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string_view>

#include "runtime/base/aligned.hpp"
#include "runtime/model/extents.hpp"

namespace hydrant {
namespace {

constexpr uint32_t kMostExtents = 4;

struct TensorType {
  std::string_view name;
  std::optional<DType> dtype;
};
// ggml's types by number. Of those that are not read only the name is known.
constexpr std::array<TensorType, 31> kTensorTypes{{{"f32", DType::f32},
                                                   {"f16", DType::f16},
                                                   {"q4_0", DType::q4_0},
                                                   {"q4_1", DType::q4_1},
                                                   {"q4_2", {}},
                                                   {"q4_3", {}},
                                                   {"q5_0", {}},
                                                   {"q5_1", {}},
                                                   {"q8_0", DType::q8_0},
                                                   {"q8_1", {}},
                                                   {"q2_k", {}},
                                                   {"q3_k", {}},
                                                   {"q4_k", DType::q4_k},
                                                   {"q5_k", {}},
                                                   {"q6_k", DType::q6_k},
                                                   {"q8_k", {}},
                                                   {"iq2_xxs", {}},
                                                   {"iq2_xs", {}},
                                                   {"iq3_xxs", {}},
                                                   {"iq1_s", {}},
                                                   {"iq4_nl", {}},
                                                   {"iq3_s", {}},
                                                   {"iq2_s", {}},
                                                   {"iq4_xs", {}},
                                                   {"i8", {}},
                                                   {"i16", {}},
                                                   {"i32", {}},
                                                   {"i64", {}},
                                                   {"f64", {}},
                                                   {"iq1_m", {}},
                                                   {"bf16", DType::bf16}}};

StoredTensor read_description(GgufCursor& cursor, uint64_t alignment) {
  StoredTensor t;
  t.name = cursor.text("a tensor's name");
  const std::string what = "tensor " + printable(t.name);
  const auto extents = cursor.number<uint32_t>(what);
  if (extents < 1 || extents > kMostExtents)
    cursor.refuse("{} has {} extents, possible are 1 to {}", what, extents, kMostExtents);
  for (uint32_t i = 0; i < extents; i++) {
    const auto extent = cursor.number<uint64_t>(what);
    if (extent < 1 || extent > uint64_t(std::numeric_limits<int64_t>::max()))
      cursor.refuse("{} has an extent of {}", what, extent);
    t.shape.insert(t.shape.begin(), int64_t(extent));  // the file's first one is contiguous
  }
  const auto type = cursor.number<uint32_t>(what);
  const TensorType known = type < kTensorTypes.size() ? kTensorTypes[type] : TensorType{};
  if (!known.dtype)
    cursor.refuse("{} has type {} ({}); f32, f16, bf16, q8_0, q4_0, q4_1, q4_k and q6_k are read",
                  what, type, known.name.empty() ? "unknown" : known.name);
  t.dtype = known.dtype;
  t.type_name = known.name;
  t.columns = t.shape.back();
  const std::optional<int64_t> count = element_count(t.shape);
  if (!count) cursor.refuse("{} of shape {} overflows", what, shape_text(t.shape));
  t.rows = *count / t.columns;
  if (t.columns % block_elements(*t.dtype) != 0)
    cursor.refuse("{}: rows of {} elements are not whole blocks of {} ({})", what, t.columns,
                  block_elements(*t.dtype), known.name);
  uint64_t bytes = uint64_t(*count / block_elements(*t.dtype));
  if (__builtin_mul_overflow(bytes, uint64_t(block_bytes(*t.dtype)), &bytes))
    cursor.refuse("{} of shape {} overflows", what, shape_text(t.shape));
  t.bytes = bytes;
  t.offset = cursor.number<uint64_t>(what);  // from the begin of the data, for now
  if (t.offset % alignment != 0)
    cursor.refuse("{} lies at {}, not at a multiple of {}", what, t.offset, alignment);
  return t;
}

}  // namespace

std::vector<StoredTensor> read_gguf_tensors(const File& file, GgufCursor& cursor, uint64_t count,
                                            uint64_t alignment) {
  std::vector<StoredTensor> list;
  list.reserve(size_t(count));
  for (uint64_t i = 0; i < count; i++) list.push_back(read_description(cursor, alignment));
  const uint64_t begin = align_up(cursor.position(), alignment), size = file.size();
  for (StoredTensor& t : list) {
    if (begin > size || t.offset > size - begin || t.bytes > size - begin - t.offset)
      cursor.refuse("tensor {} needs {} bytes at {}, the file has {}", printable(t.name), t.bytes,
                    begin + t.offset, size);
    t.offset += begin;
  }
  std::sort(list.begin(), list.end(),
            [](const auto& a, const auto& b) { return a.offset < b.offset; });
  for (size_t i = 1; i < list.size(); i++)
    if (list[i - 1].offset + list[i - 1].bytes > list[i].offset)
      cursor.refuse("tensor {} overlaps tensor {}", printable(list[i].name),
                    printable(list[i - 1].name));
  const uint64_t end = list.empty() ? begin : list.back().offset + list.back().bytes;
  if (size > align_up(end, alignment))
    cursor.refuse("its tensors end at byte {}, but the file has {}", end, size);
  return list;
}

}  // namespace hydrant
