#include "runtime/backends/cpu/kernels/attend_scratch.hpp"

#include <new>

#include "runtime/base/error.hpp"

namespace hydrant::cpu {

const AttendKernels& attend_kernels(Isa isa) {
  switch (isa) {
    case Isa::generic:
      return generic::attend_kernels;
    case Isa::avx2:
      return avx2::attend_kernels;
    case Isa::avx512:
      return avx512::attend_kernels;
    case Isa::avx512_bf16:
    case Isa::amx:
      return avx512_bf16::attend_kernels;
  }
  fail(Fault::internal, "no attention for instruction path {}", int(isa));
}

const Buffer& AttendScratch::at_least(size_t bytes) {
  constexpr std::align_val_t line{64};
  if (bytes > buffer_.bytes()) {
    buffer_ = Buffer();  // two at a time would be more memory than was promised
    buffer_ = Buffer(::operator new(bytes, line), bytes, Memory::device,
                     [](void* data, size_t) { ::operator delete(data, line); });
  }
  return buffer_;
}

TileScratch* take_tiles(Arena& arena, int count, int32_t head_dim, int32_t rows, bool rotated) {
  const size_t d = size_t(head_dim), n = size_t(rows);
  auto* const tiles = take<TileScratch>(arena, size_t(count));
  for (int i = 0; i < count; i++) {
    TileScratch s;
    s.left = take<float>(arena, n * d + 16);
    s.logits = take<float>(arena, size_t(kRegisterRows) * kAttendBlock);
    s.weights = take<float>(arena, size_t(kRegisterRows) * kAttendBlock);
    s.out = take<float>(arena, n * size_t(padded(head_dim)));
    s.most = take<float>(arena, n);
    s.total = take<float>(arena, n * 16);
    s.panel = take<float>(arena, rotated ? d * 16 : 0);
    if (tiles) tiles[i] = s;
  }
  return tiles;
}

}  // namespace hydrant::cpu
