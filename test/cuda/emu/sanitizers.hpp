// What the sanitizers offer to those who schedule by hand. The functions exist only in programs
// built with the sanitizer, so one object file serves every build.
#pragma once
#include <cstddef>

extern "C" {
void* __tsan_create_fiber(unsigned) __attribute__((weak));
void __tsan_destroy_fiber(void*) __attribute__((weak));
void __tsan_switch_to_fiber(void*, unsigned) __attribute__((weak));
void* __tsan_get_current_fiber() __attribute__((weak));
void __tsan_acquire(void*) __attribute__((weak));
void __tsan_release(void*) __attribute__((weak));
void AnnotateIgnoreReadsBegin(const char*, int) __attribute__((weak));
void AnnotateIgnoreReadsEnd(const char*, int) __attribute__((weak));
void AnnotateIgnoreWritesBegin(const char*, int) __attribute__((weak));
void AnnotateIgnoreWritesEnd(const char*, int) __attribute__((weak));
void AnnotateIgnoreSyncBegin(const char*, int) __attribute__((weak));
void AnnotateIgnoreSyncEnd(const char*, int) __attribute__((weak));
void __sanitizer_start_switch_fiber(void**, const void*, size_t) __attribute__((weak));
void __sanitizer_finish_switch_fiber(void*, const void**, size_t*) __attribute__((weak));
void __asan_init() __attribute__((weak));
void __asan_poison_memory_region(const volatile void*, size_t) __attribute__((weak));
void __asan_unpoison_memory_region(const volatile void*, size_t) __attribute__((weak));
void __msan_poison(const volatile void*, size_t) __attribute__((weak));
}

namespace emu {

// ThreadSanitizer ignores what the emulator itself reads and writes: malloc and memcpy are watched
// however they were compiled. A fiber must not be left for good while one lives.
class Quiet {
 public:
  Quiet() {
    if (!AnnotateIgnoreReadsBegin) return;
    AnnotateIgnoreReadsBegin("", 0);
    AnnotateIgnoreWritesBegin("", 0);
  }
  ~Quiet() {
    if (!AnnotateIgnoreReadsBegin) return;
    AnnotateIgnoreWritesEnd("", 0);
    AnnotateIgnoreReadsEnd("", 0);
  }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;
};

// The same, and locks order nothing either: only what is said with __tsan_release and acquire does.
class Hidden {
 public:
  Hidden() {
    if (AnnotateIgnoreSyncBegin) AnnotateIgnoreSyncBegin("", 0);
  }
  ~Hidden() {
    if (AnnotateIgnoreSyncEnd) AnnotateIgnoreSyncEnd("", 0);
  }
  Hidden(const Hidden&) = delete;
  Hidden& operator=(const Hidden&) = delete;

 private:
  Quiet quiet_;
};

}  // namespace emu
