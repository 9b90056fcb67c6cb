// How the emulator behaves, from the environment, so that one binary runs in every order.
//
//   EMU_ORDER    forward, reverse or random: of threads, warps and blocks
//   EMU_SEED     of everything random
//   EMU_RACE     1: every CUDA thread is one of ThreadSanitizer's, for finding races in kernels
//   EMU_SCHED    threads: a stream is a thread. det: none has one; whoever waits runs them in an
//                order that the seed chooses, and the host cannot touch device memory
//   EMU_JITTER   up to so many microseconds before an operation of a stream
//   EMU_MEM_MB   of device memory
//   EMU_PIN_KB   that can be pinned
//   EMU_DEVICES  how many; 0: as on a machine without a driver
//   EMU_DRIVER   of which CUDA version the driver is, 13000 by default
//   EMU_BREAK_AT the launch, counted from 1, whose kernel faults: every call fails from then on
//   EMU_LOSE_AT  the copy, counted from 1, at which the device is lost: every call fails then on
//   EMU_START    what choosing the device returns: 2 for no memory, 46 for not available
//   EMU_BLAS     what a new handle of cuBLAS returns: 3 for no memory
//   EMU_CODE     0: kernels have no code for the device
//   EMU_SM       compute capability, 80 by default
//   EMU_ONLY     the device that the last three are about, by index; all by default
#pragma once
#include <cstdint>

namespace emu {

enum class Order : uint8_t { forward, reverse, random };

struct Settings {
  Order order = Order::forward;
  uint32_t seed = 1;
  bool race = false, deterministic = false;
  int jitter = 0, devices = 1, driver = 13000, capability = 80, break_at = 0;
  int lose_at = 0, start = 0, only = -1, blas = 0;
  bool code = true;
  uint64_t device_bytes = 0, pinned_bytes = 0;
};

const Settings& settings();

// What is said of some device is said of this one.
inline bool singled_out(int device) { return settings().only < 0 || settings().only == device; }

}  // namespace emu
