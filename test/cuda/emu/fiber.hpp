// Stacks that one OS thread switches between: each is a CUDA thread of the block that it runs.
#pragma once
#include <cstddef>

namespace emu {

struct Context {
  void* stack_pointer = nullptr;
};

struct Fiber {
  Context context;
  char* stack = nullptr;
  void* tsan = nullptr;        // ThreadSanitizer's identity
  void* fake_stack = nullptr;  // AddressSanitizer's
};

inline constexpr size_t kStackBytes = size_t{256} << 10;

// A fiber that begins with entry(), which must not return. A page below its stack is not mapped.
Fiber* make_fiber(void (*entry)());
void destroy_fiber(Fiber* fiber);

// Goes on where `to` stopped; returns when someone goes on with `from`. Sanitizers are not told.
void switch_context(Context& from, const Context& to);

}  // namespace emu
