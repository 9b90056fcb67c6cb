#include <algorithm>
#include <cstring>

#include "runtime/base/error.hpp"
#include "runtime/base/half.hpp"
#include "runtime/model/finite.hpp"
#include "runtime/model/panel_reader.hpp"

namespace hydrant {
namespace {

float element(DType dtype, const std::byte* from, int64_t index) {
  if (dtype == DType::f32) {
    float value;
    std::memcpy(&value, from + index * 4, sizeof value);
    return value;
  }
  uint16_t half;
  std::memcpy(&half, from + index * 2, sizeof half);
  return dtype == DType::f16 ? f16_to_f32(half) : bf16_to_f32(half);
}

}  // namespace

void load_vector(const Checkpoint& checkpoint, const VectorPlan& plan, Upload& upload,
                 std::byte* whole) {
  const VectorSource& source = plan.source;
  const auto begin = size_t(source.begin) * sizeof(float),
             bytes = size_t(source.size) * sizeof(float);
  auto* const to = reinterpret_cast<float*>(upload.room(whole + begin, bytes, Memory::device));
  if (!plan.tensor) {
    std::fill(to, to + source.size, 1.0f);
    return upload.finish();
  }
  const StoredTensor& t = *plan.tensor;
  std::vector<std::byte> stored(size_t(row_bytes(*t.dtype, t.columns)));
  checkpoint.read_rows(t, 0, 1, stored.data());
  if (!all_finite(*t.dtype, stored))
    fail(Fault::bad_file, "{}: tensor {} holds a value that is not finite", checkpoint.path_of(t),
         t.name);
  for (int64_t i = 0; i < source.size; i++) {
    const int64_t from = source.order(i);
    ensure(from >= 0 && from < t.columns, "element {} of {}", from, t.name);
    to[i] = element(*t.dtype, stored.data(), from);
  }
  upload.finish();
}

}  // namespace hydrant
