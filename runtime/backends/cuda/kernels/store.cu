#include "runtime/backends/cuda/kernels/store.hpp"

#include <algorithm>

#include "runtime/backends/cuda/kernels/kv.cuh"
#include "runtime/backends/cuda/kernels/report.cuh"

namespace hydrant::cuda {
namespace {

constexpr int kThreads = 64;

// A key or value in words of 16 bytes, each by the thread that moves it next time too: a row that
// is read before it is overwritten needs no barrier.
template <class T>
__device__ void copy_row(const T* from, T* to, int32_t dim) {
  const auto* const in = reinterpret_cast<const uint4*>(from);
  auto* const out = reinterpret_cast<uint4*>(to);
  const int32_t words = dim * int32_t(sizeof(T)) / int32_t(sizeof(uint4));
  for (int32_t i = int32_t(threadIdx.x); i < words; i += kThreads) out[i] = in[i];
}

// One KV head of one row, before and after the step.
template <class T>
struct Move {
  KvHead<T> from, to;
  const float* from_score;
  float* to_score;
  const int32_t* from_position;
  int32_t* to_position;

  __device__ Move(const Cache& before, const Cache& after, int32_t place, int32_t kv_head)
      : from(before.head<T>(place, kv_head)),
        to(after.head<T>(place, kv_head)),
        from_score(before.scores_of(place, kv_head)),
        to_score(after.scores_of(place, kv_head)),
        from_position(before.positions_of(place, kv_head)),
        to_position(after.positions_of(place, kv_head)) {}
  __device__ void row(int32_t from_row, int32_t to_row) const {
    if (from_row != to_row || from.first != to.first) {
      copy_row(from.key(from_row), to.key(to_row), to.dim);
      copy_row(from.value(from_row), to.value(to_row), to.dim);
    }
    if (threadIdx.x != 0) return;
    to_score[to_row] = from_score[from_row];
    to_position[to_row] = from_position[from_row];
  }
};

// A block for each row and KV head: leaving -> victim, then landing -> ring.
template <class T>
__global__ void __launch_bounds__(kThreads, 8)
    store_decode_kernel(StepRows rows, Cache from, Cache to, KernelFault* fault) {
  const StepRow& row = rows.at[blockIdx.x];
  const auto kv_head = int32_t(blockIdx.y);
  const policy::SlotLayout& slots = row.plan.slots;
  const Move<T> move(from, to, row.place, kv_head);
  const int32_t landing = slots.landing_of(row.position);
  if (!slots.evicts_at(row.position)) return move.row(landing, landing);
  const int32_t leaving = slots.leaving_of(row.position);
  const int32_t victim = from.victim[from.head_index(row.place, kv_head)];
  if (victim < 0 || victim > landing) {
    if (threadIdx.x == 0) report(fault, FaultKind::victim, row.position, victim, landing);
    return;
  }
  if (victim != leaving) move.row(leaving, victim);
  if (landing != leaving) move.row(landing, leaving);  // else recent = 0: it was the leaving one
}

struct Gathering {
  KvRuns keys, values, to;
  const int32_t* position;  // [kv_head, slots]
  int32_t slots, dim;
  bool in_place;  // slot = position
};

// A block for each slot and KV head. What lies there already is not copied.
template <class T>
__global__ void __launch_bounds__(kThreads) gather_slots_kernel(Gathering g) {
  const auto slot = int32_t(blockIdx.x), kv_head = int32_t(blockIdx.y);
  const int32_t position = g.in_place ? slot : g.position[int64_t{kv_head} * g.slots + slot];
  const KvHead<T> to(g.to, kv_head, g.dim);
  if (g.keys.data != g.to.data)
    copy_row(KvHead<T>(g.keys, kv_head, g.dim).key(position), to.key(slot), g.dim);
  if (g.values.data != g.to.data)
    copy_row(KvHead<T>(g.values, kv_head, g.dim).value(position), to.value(slot), g.dim);
}

}  // namespace

cudaError_t store_decode(cudaStream_t stream, KernelFault* fault, const StoreDecodeArgs& a) {
  return with_kv_type(a.to.dtype, [&]<class T>(T) {
    return each_rows(a.segments, a.to.plans, [&](const StepRows& rows, unsigned count) {
      return launch(store_decode_kernel<T>,
                    {dim3(count, unsigned(a.to.kv_heads)), dim3(kThreads), 0, stream}, rows,
                    Cache(a.from), Cache(a.to), fault);
    });
  });
}

cudaError_t store_prompt(cudaStream_t stream, const StorePromptArgs& a) {
  if (const cudaError_t error = select_prompt(stream, a); error != cudaSuccess) return error;
  const PromptSegment& prompt = a.prompt;
  const int32_t place = prompt.segment.place;
  const policy::RowPlan& plan = a.to.plans[place];
  const int32_t stored = std::min(prompt.length, plan.slots.capacity());
  const Gathering gathering{prompt.raw.data ? prompt.raw : prompt.kv,
                            prompt.kv,
                            a.to.row(place),
                            a.to.positions_of(place, 0),
                            a.to.slots,
                            a.to.head_dim,
                            stored == prompt.length};
  const bool there = gathering.keys.data == gathering.to.data;
  if (there && gathering.values.data == gathering.to.data) return cudaSuccess;
  return with_kv_type(a.to.dtype, [&]<class T>(T) {
    return launch(gather_slots_kernel<T>,
                  {dim3(unsigned(stored), unsigned(a.to.kv_heads)), dim3(kThreads), 0, stream},
                  gathering);
  });
}

}  // namespace hydrant::cuda
