#include "test/cuda/emu/fiber.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>

#include "test/cuda/emu/sanitizers.hpp"

// Keeps what the System V ABI of x86-64 says that a callee keeps, then changes stacks.
extern "C" void emu_switch(void** from, void* to);
asm(R"(
.text
.type emu_switch,@function
.globl emu_switch
emu_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size emu_switch, .-emu_switch
)");

namespace emu {
namespace {

constexpr size_t kGuard = 4096;
constexpr int kSavedRegisters = 6;

}  // namespace

void switch_context(Context& from, const Context& to) {
  emu_switch(&from.stack_pointer, to.stack_pointer);
}

Fiber* make_fiber(void (*entry)()) {
  void* const memory = mmap(nullptr, kStackBytes + kGuard, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  mprotect(memory, kGuard, PROT_NONE);
  auto* const fiber = new Fiber;
  fiber->stack = static_cast<char*>(memory) + kGuard;
  auto** top = reinterpret_cast<void**>(fiber->stack + kStackBytes);
  *--top = nullptr;  // where entry() would return to
  *--top = reinterpret_cast<void*>(entry);
  for (int i = 0; i < kSavedRegisters; i++) *--top = nullptr;
  fiber->context.stack_pointer = top;
  if (__tsan_create_fiber) fiber->tsan = __tsan_create_fiber(0);
  return fiber;
}

void destroy_fiber(Fiber* fiber) {
  if (fiber->tsan) __tsan_destroy_fiber(fiber->tsan);
  munmap(fiber->stack - kGuard, kStackBytes + kGuard);
  delete fiber;
}

}  // namespace emu
