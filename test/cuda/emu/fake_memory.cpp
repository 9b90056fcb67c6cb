#include "test/cuda/emu/fake_memory.hpp"

#include <signal.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "test/cuda/emu/fake_runtime.hpp"
#include "test/cuda/emu/fake_streams.hpp"
#include "test/cuda/emu/sanitizers.hpp"
#include "test/cuda/emu/settings.hpp"

namespace emu {
namespace {

constexpr size_t kPage = 4096, kAlignment = 256;

size_t round_up(size_t bytes, size_t step) { return (bytes + step - 1) / step * step; }

// AddressSanitizer fences blocks better than pages do.
bool guarded() { return settings().deterministic && !__asan_init; }

struct sigaction other_handler;

// Says what was touched if it is ours, and leaves the rest to whoever else looks at faults.
void on_fault(int, siginfo_t* what, void*) {
  FakeRuntime::get().memory.explain(what->si_addr);
  sigaction(SIGSEGV, &other_handler, nullptr);
}

void watch_faults() {
  struct sigaction now {};
  sigaction(SIGSEGV, nullptr, &now);
  if (now.sa_sigaction == on_fault) return;
  other_handler = now;
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
}

}  // namespace

void FakeMemory::explain(const void* at) const {
  const auto* const address = static_cast<const char*>(at);
  for (const auto& [data, block] : device_) {
    if (address < block.base || address >= block.base + block.mapped) continue;
    const auto offset = static_cast<long long>(address - data);
    if (open_ > 0 || offset >= static_cast<long long>(block.bytes))
      std::fprintf(stderr,
                   "FAKE CUDA: byte %lld of a block of %zu bytes of device memory was touched\n",
                   offset, block.bytes);
    else
      std::fprintf(stderr,
                   "FAKE CUDA: the host touched device memory: %p, byte %lld of a block of %zu\n",
                   at, offset, block.bytes);
  }
}

bool FakeMemory::inside(const Blocks& blocks, const void* at, size_t bytes) {
  const auto* begin = static_cast<const char*>(at);
  auto next = blocks.upper_bound(begin);
  if (next == blocks.begin()) return false;
  --next;
  return begin + bytes <= next->first + next->second.bytes;
}

size_t FakeMemory::free_bytes() const { return settings().device_bytes - device_used_; }

cudaError_t FakeMemory::allocate(void** at, size_t bytes) {
  if (bytes > free_bytes()) return cudaErrorMemoryAllocation;
  Block block{bytes, nullptr, 0};
  char* data = nullptr;
  if (guarded()) {
    watch_faults();
    // The end of the block lies at a page that nobody may touch.
    block.mapped = round_up(bytes, kPage) + kPage;
    void* const base = mmap(nullptr, block.mapped, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) std::abort();
    block.base = static_cast<char*>(base);
    std::memset(block.base, 0xff, block.mapped - kPage);
    mprotect(block.base + block.mapped - kPage, kPage, PROT_NONE);
    data = block.base + (block.mapped - kPage - bytes) / kAlignment * kAlignment;
    if (open_ == 0) mprotect(block.base, block.mapped - kPage, PROT_NONE);
  } else {
    data = block.base =
        static_cast<char*>(std::aligned_alloc(kAlignment, round_up(bytes, kAlignment)));
    std::memset(data, 0xff, bytes);
    // Where rounding has left room behind the end, AddressSanitizer would see no fence.
    if (__asan_poison_memory_region)
      __asan_poison_memory_region(data + bytes, round_up(bytes, kAlignment) - bytes);
  }
  device_[data] = block;
  device_used_ += bytes;
  *at = data;
  return cudaSuccess;
}

void FakeMemory::free(void* at) {
  const auto found = device_.find(static_cast<char*>(at));
  if (found == device_.end()) die("cudaFree of %p", at);
  const Block block = found->second;
  device_.erase(found);
  device_used_ -= block.bytes;
  if (block.mapped > 0)
    munmap(block.base, block.mapped);
  else
    std::free(block.base);
}

cudaError_t FakeMemory::pin(void** at, size_t bytes) {
  if (pinned_used_ + bytes > settings().pinned_bytes) return cudaErrorMemoryAllocation;
  auto* const data = static_cast<char*>(std::aligned_alloc(kPage, round_up(bytes, kPage)));
  if (!data) return cudaErrorMemoryAllocation;
  std::memset(data, 0xff, bytes);
  pinned_[data] = {bytes, data, 0};
  pinned_used_ += bytes;
  *at = data;
  return cudaSuccess;
}

void FakeMemory::unpin(void* at) {
  const auto found = pinned_.find(static_cast<char*>(at));
  if (found == pinned_.end()) die("cudaFreeHost of %p", at);
  pinned_used_ -= found->second.bytes;
  std::free(found->second.base);
  pinned_.erase(found);
}

void FakeMemory::protect(int how) const {
  if (!guarded()) return;
  for (const auto& [at, block] : device_) mprotect(block.base, block.mapped - kPage, how);
}
void FakeMemory::open() {
  if (open_++ == 0) protect(PROT_READ | PROT_WRITE);
}
void FakeMemory::close() {
  if (--open_ == 0) protect(PROT_NONE);
}

}  // namespace emu
