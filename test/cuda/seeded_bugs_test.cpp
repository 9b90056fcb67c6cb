// The emulator must notice every seeded mistake that its build can notice, and nothing in the
// correct twins: a checker that has gone blind would pass everything.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "test/cuda/emu/sanitizers.hpp"
#include "test/cuda/seeded_bugs.cuh"

using namespace hydrant::test;

namespace {

// Who can notice: threads in another order (or the scheduler, or NaN in the output), else a
// sanitizer.
enum class Notices { order, races, addresses };

struct Case {
  std::string name;
  Notices by;
  void (*kernel[2])(Memory);  // right, wrong
  dim3 grid, block;
  std::function<float(const float* in, int i)> expected;
  int outputs;
};

float total(const float* in, int count) {
  float sum = 0;
  for (int i = 0; i < count; i++) sum += in[i];
  return sum;
}
float product(const float* in, int i) {
  float sum = 0;
  for (int k = 0; k < 64; k++) sum += in[i / 64 * 64 + k] * in[k * 64 + i % 64];
  return sum;
}
float small_product(const float* in, int i) {
  float sum = 0;
  for (int k = 0; k < 16; k++) sum += in[i / 16 * 16 + k] * in[256 + k * 16 + i % 16];
  return sum;
}
float one(const float*, int) { return 1; }
auto constant(float value) {
  return [value](const float*, int) { return value; };
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"tile overwritten",
       Notices::order,
       {tile_overwritten<false>, tile_overwritten<true>},
       {4, 4},
       {16, 16},
       product,
       4096},
      {"first reads too early",
       Notices::order,
       {first_reads_too_early<false>, first_reads_too_early<true>},
       1,
       256,
       [](const float* in, int) { return total(in, 256); },
       1},
      {"last reads too early",
       Notices::order,
       {last_reads_too_early<false>, last_reads_too_early<true>},
       1,
       256,
       [](const float* in, int) { return total(in, 256); },
       1},
      {"counted without atomics",
       Notices::races,
       {counted_without_atomics<false>, counted_without_atomics<true>},
       1,
       256,
       constant(256),
       1},
      {"copy not waited for",
       Notices::order,
       {copy_not_waited_for<false>, copy_not_waited_for<true>},
       1,
       32,
       small_product,
       256},
      {"lock step",
       Notices::order,
       {lock_step<false>, lock_step<true>},
       1,
       64,
       [](const float* in, int i) { return in[i ^ 1]; },
       64},
      {"blocks add without atomics",
       Notices::races,
       {blocks_add_without_atomics<false>, blocks_add_without_atomics<true>},
       4,
       32,
       constant(4),
       1},
      {"last block without fence",
       Notices::races,
       {last_block_without_fence<false>, last_block_without_fence<true>},
       8,
       32,
       [](const float* in, int) { return total(in, 256); },
       1},
      {"barrier in a branch",
       Notices::order,
       {barrier_in_a_branch<false>, barrier_in_a_branch<true>},
       1,
       64,
       one,
       64},
      {"shuffle in a branch",
       Notices::order,
       {shuffle_in_a_branch<false>, shuffle_in_a_branch<true>},
       1,
       32,
       one,
       32},
      {"ends before a barrier",
       Notices::order,
       {ends_before_a_barrier<false>, ends_before_a_barrier<true>},
       1,
       32,
       one,
       32},
      {"shared memory not set",
       Notices::order,
       {shared_memory_not_set<false>, shared_memory_not_set<true>},
       1,
       32,
       one,
       32},
      {"behind a shared array",
       Notices::addresses,
       {behind_a_shared_array<false>, behind_a_shared_array<true>},
       1,
       32,
       one,
       32},
      {"behind dynamic shared memory",
       Notices::addresses,
       {behind_dynamic_shared_memory<false>, behind_dynamic_shared_memory<true>},
       1,
       32,
       one,
       32},
      {"behind global memory",
       Notices::addresses,
       {behind_global_memory<false>, behind_global_memory<true>},
       129,
       32,
       one,
       4096},
  };
  return all;
}

// Whole numbers: sums are exact in any order.
bool right_output(const Case& c, bool wrong) {
  std::vector<float> in(4096), out(4096, 0.0f);
  for (size_t i = 0; i < in.size(); i++) in[i] = float(int(i * 7 % 13) - 6);
  int32_t counter = 0;
  const Memory memory{in.data(), out.data(), &counter};
  emu::run_grid("seeded", c.grid, c.block, 128, [&] { c.kernel[wrong](memory); });
  for (int i = 0; i < c.outputs; i++)
    if (!(out[size_t(i)] == c.expected(in.data(), i))) return false;
  return true;
}

// In a process of its own, for the emulator aborts: did anyone complain?
bool noticed(const Case& c, bool wrong, const char* order) {
  std::fflush(nullptr);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    setenv("EMU_ORDER", order, 1);
    if (__tsan_create_fiber) setenv("EMU_RACE", "1", 1);
    for (const int signal_of_catch : {SIGABRT, SIGSEGV, SIGFPE, SIGILL, SIGTERM})
      signal(signal_of_catch, SIG_DFL);
    if (!freopen("/dev/null", "w", stderr)) _exit(2);
    std::exit(right_output(c, wrong) ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

bool can_notice(Notices by) {
  switch (by) {
    case Notices::order:
      return true;
    case Notices::races:
      return __tsan_create_fiber != nullptr;
    case Notices::addresses:
      return __asan_init != nullptr;
  }
  return false;
}

}  // namespace

TEST_CASE("the emulator notices seeded mistakes, and nothing in their correct twins") {
  for (const Case& c : cases()) {
    CAPTURE(c.name);
    bool seen = false;
    for (const char* order : {"forward", "reverse", "random"}) {
      CAPTURE(order);
      CHECK_FALSE(noticed(c, false, order));
      seen = seen || noticed(c, true, order);
    }
    if (can_notice(c.by)) CHECK(seen);
  }
}
