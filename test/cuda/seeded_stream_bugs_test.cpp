// A small pipeline of two streams and the host, right and with one seeded mistake each: what a
// seeded order of the streams must notice, and that it says so where the host reaches into the
// device's memory.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "runtime/backends/cuda/portable.cuh"
#include "test/cuda/emu/sanitizers.hpp"

namespace {

enum class Mistake {
  none,
  computes_before_the_copy,
  copies_into_what_is_read,
  refills_what_is_copied,
  reads_before_the_end,
  touches_device_memory,
  copies_past_the_end
};

constexpr int kCount = 64, kLayers = 6;

__global__ void add(const float* from, float* sum) {
  sum[threadIdx.x] = sum[threadIdx.x] * 2 + from[threadIdx.x];
}

// Layers pass through two pinned and two device buffers; their sum, doubled at each, comes back.
bool right_result(Mistake mistake) {
  cudaStream_t load = nullptr, compute = nullptr;
  cudaStreamCreateWithFlags(&load, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking);
  float *pinned[2], *staged[2], *sum, *result;
  cudaEvent_t copied[2], used[2];
  const auto allocate = [](float*& at, bool device) {
    void* memory = nullptr;
    if (device)
      cudaMalloc(&memory, kCount * sizeof(float));
    else
      cudaHostAlloc(&memory, kCount * sizeof(float), cudaHostAllocPortable);
    at = static_cast<float*>(memory);
  };
  for (int i = 0; i < 2; i++) {
    allocate(pinned[i], false);
    allocate(staged[i], true);
    cudaEventCreateWithFlags(&copied[i], cudaEventDisableTiming);
    cudaEventCreateWithFlags(&used[i], cudaEventDisableTiming);
  }
  allocate(sum, true);
  allocate(result, false);
  cudaMemsetAsync(sum, 0, kCount * sizeof(float), compute);
  float expected = 0;
  for (int layer = 0; layer < kLayers; layer++) {
    const int slot = layer % 2;
    if (mistake != Mistake::refills_what_is_copied) cudaEventSynchronize(copied[slot]);
    for (int i = 0; i < kCount; i++) pinned[slot][i] = float(layer + 1);
    if (mistake != Mistake::copies_into_what_is_read) cudaStreamWaitEvent(load, used[slot], 0);
    const int more = mistake == Mistake::copies_past_the_end && layer == 3;
    cudaMemcpyAsync(staged[slot], pinned[slot], (kCount + more) * sizeof(float), cudaMemcpyDefault,
                    load);
    cudaEventRecord(copied[slot], load);
    if (mistake != Mistake::computes_before_the_copy) cudaStreamWaitEvent(compute, copied[slot], 0);
    hydrant::cuda::launch(add, {dim3(1), dim3(kCount), 0, compute}, staged[slot], sum);
    cudaEventRecord(used[slot], compute);
    expected = expected * 2 + float(layer + 1);
  }
  cudaMemcpyAsync(result, sum, kCount * sizeof(float), cudaMemcpyDefault, compute);
  if (mistake != Mistake::reads_before_the_end) cudaStreamSynchronize(compute);
  for (int i = 0; i < kCount; i++)
    if ((mistake == Mistake::touches_device_memory ? sum : result)[i] != expected) return false;
  return true;
}

struct Ended {
  bool well;
  std::string said;
};

// In a process of its own: settings are read once, and mistakes abort.
Ended run(Mistake mistake, int seed) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  std::fflush(nullptr);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    setenv("EMU_SCHED", "det", 1);
    setenv("EMU_SEED", std::to_string(seed).c_str(), 1);
    for (const int caught : {SIGABRT, SIGSEGV}) signal(caught, SIG_DFL);
    dup2(ends[1], STDERR_FILENO);
    _exit(right_result(mistake) ? 0 : 1);
  }
  close(ends[1]);
  Ended ended{false, ""};
  char piece[256];
  for (ssize_t size = 0; (size = read(ends[0], piece, sizeof piece)) > 0;)
    ended.said.append(piece, size_t(size));
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  ended.well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return ended;
}

// ThreadSanitizer needs no such orders, and knows none of one thread that plays all streams.
bool watched() { return __tsan_create_fiber != nullptr; }

}  // namespace

TEST_CASE("seeded orders of streams show a missing wait, and nothing in the correct pipeline") {
  if (watched()) return;
  constexpr int kSeeds = 20;
  for (int seed = 1; seed <= kSeeds; seed++) {
    CAPTURE(seed);
    const Ended ended = run(Mistake::none, seed);
    CHECK(ended.well);
    CHECK(ended.said == "");
  }
  for (const Mistake mistake :
       {Mistake::computes_before_the_copy, Mistake::copies_into_what_is_read,
        Mistake::refills_what_is_copied, Mistake::reads_before_the_end}) {
    int noticed = 0;
    for (int seed = 1; seed <= kSeeds; seed++) noticed += !run(mistake, seed).well;
    CAPTURE(int(mistake));
    CHECK(noticed >= kSeeds / 10);
  }
}

TEST_CASE("what leaves its memory is named, whatever the order") {
  if (watched()) return;
  for (int seed = 1; seed <= 5; seed++) {
    CAPTURE(seed);
    const Ended past = run(Mistake::copies_past_the_end, seed);
    CHECK_FALSE(past.well);
    CHECK_THAT(past.said, Catch::Contains("FAKE CUDA: a copy of 260 bytes, ") &&
                              Catch::Contains("leaves its block"));
    if (__asan_init) continue;  // blocks are fenced by it then, and the host may read them
    const Ended touched = run(Mistake::touches_device_memory, seed);
    CHECK_FALSE(touched.well);
    CHECK_THAT(touched.said, Catch::Contains("FAKE CUDA: the host touched device memory: ") &&
                                 Catch::Contains("byte 0 of a block of 256"));
  }
}
