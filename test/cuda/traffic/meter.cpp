#include "test/cuda/traffic/meter.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "test/cuda/emu/engine.hpp"

namespace hydrant::test {
namespace {

// Plain arrays: the counting calls nothing that is counted itself.
struct Range {
  const char *begin, *end;
  Traffic traffic;
  uint64_t *reader, *writer;  // of each byte: the last block that came to it
};
constexpr int kMost = 16;
Range ranges[kMost];
std::atomic<int> count{0};

void add(Bytes& bytes, uint64_t* block_of, size_t first, size_t size, uint64_t block) {
  bytes.asked += size;
  for (size_t i = first; i < first + size; i++) {
    bytes.moved += block_of[i] != block;
    block_of[i] = block;
  }
}

void access(const void* at, size_t size, bool write) {
  const int known = count.load(std::memory_order_acquire);
  if (known == 0 || !emu::current) return;  // the host's own
  const auto* const begin = static_cast<const char*>(at);
  for (Range* r = ranges; r < ranges + known; r++) {
    if (begin < r->begin || begin + size > r->end) continue;
    const uint64_t block = emu::Engine::if_any()->blocks();
    if (write)
      add(r->traffic.written, r->writer, size_t(begin - r->begin), size, block);
    else
      add(r->traffic.read, r->reader, size_t(begin - r->begin), size, block);
  }
}

}  // namespace

Meter::Meter() {
  if (count != 0) std::abort();
}
Meter::~Meter() {
  for (int i = count.exchange(0); i-- > 0;) {
    std::free(ranges[i].reader);
    std::free(ranges[i].writer);
  }
}

const Traffic& Meter::of(const void* at, size_t bytes) {
  const int known = count;
  if (known == kMost) std::abort();
  const auto* const begin = static_cast<const char*>(at);
  const auto blocks = [&] { return static_cast<uint64_t*>(std::calloc(bytes, sizeof(uint64_t))); };
  ranges[known] = {begin, begin + bytes, {}, blocks(), blocks()};
  count.store(known + 1, std::memory_order_release);
  return ranges[known].traffic;
}

}  // namespace hydrant::test

using hydrant::test::access;

// What -fsanitize=thread calls. Accesses that are not aligned count like others.
extern "C" {
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_read1(void* at) { access(at, 1, false); }
void __tsan_read2(void* at) { access(at, 2, false); }
void __tsan_read4(void* at) { access(at, 4, false); }
void __tsan_read8(void* at) { access(at, 8, false); }
void __tsan_read16(void* at) { access(at, 16, false); }
void __tsan_write1(void* at) { access(at, 1, true); }
void __tsan_write2(void* at) { access(at, 2, true); }
void __tsan_write4(void* at) { access(at, 4, true); }
void __tsan_write8(void* at) { access(at, 8, true); }
void __tsan_write16(void* at) { access(at, 16, true); }
void __tsan_unaligned_read2(void* at) { access(at, 2, false); }
void __tsan_unaligned_read4(void* at) { access(at, 4, false); }
void __tsan_unaligned_read8(void* at) { access(at, 8, false); }
void __tsan_unaligned_read16(void* at) { access(at, 16, false); }
void __tsan_unaligned_write2(void* at) { access(at, 2, true); }
void __tsan_unaligned_write4(void* at) { access(at, 4, true); }
void __tsan_unaligned_write8(void* at) { access(at, 8, true); }
void __tsan_unaligned_write16(void* at) { access(at, 16, true); }
void __tsan_read_range(void* at, unsigned long size) { access(at, size, false); }
void __tsan_write_range(void* at, unsigned long size) { access(at, size, true); }
}

// Atomics are done, not counted: no kernel moves data by them.
extern "C" {
unsigned char __tsan_atomic8_load(const volatile unsigned char* at, int) {
  return __atomic_load_n(at, __ATOMIC_SEQ_CST);
}
uint32_t __tsan_atomic32_load(const volatile uint32_t* at, int) {
  return __atomic_load_n(at, __ATOMIC_SEQ_CST);
}
uint32_t __tsan_atomic32_fetch_add(volatile uint32_t* at, uint32_t value, int) {
  return __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST);
}
int __tsan_atomic32_compare_exchange_strong(volatile uint32_t* at, uint32_t* old, uint32_t value,
                                            int, int) {
  return __atomic_compare_exchange_n(at, old, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
int __tsan_atomic32_compare_exchange_weak(volatile uint32_t* at, uint32_t* old, uint32_t value, int,
                                          int) {
  return __atomic_compare_exchange_n(at, old, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
}
