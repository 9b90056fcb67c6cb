#include "runtime/base/dtype.hpp"

#include <array>

#include "runtime/base/error.hpp"

namespace hydrant {
namespace {

struct Info {
  std::string_view name;
  int64_t elements, bytes;
};
constexpr std::array<Info, 9> kInfo{{{"f32", 1, 4},
                                     {"f16", 1, 2},
                                     {"bf16", 1, 2},
                                     {"i32", 1, 4},
                                     {"q8_0", 32, 34},
                                     {"q4_0", 32, 18},
                                     {"q4_1", 32, 20},
                                     {"q4_k", 256, 144},
                                     {"q6_k", 256, 210}}};
const Info& info(DType dtype) { return kInfo[size_t(dtype)]; }

}  // namespace

int64_t block_elements(DType dtype) { return info(dtype).elements; }
int64_t block_bytes(DType dtype) { return info(dtype).bytes; }
std::string_view name(DType dtype) { return info(dtype).name; }

int64_t row_bytes(DType dtype, int64_t elements) {
  const Info& i = info(dtype);
  ensure(elements % i.elements == 0, "a row of {} elements is not whole blocks of {}", elements,
         i.name);
  return elements / i.elements * i.bytes;
}

std::optional<DType> dtype_named(std::string_view name) {
  for (size_t i = 0; i < kInfo.size(); i++)
    if (kInfo[i].name == name) return DType(i);
  return std::nullopt;
}

}  // namespace hydrant
