#include "runtime/backends/cuda/cuda_ops.hpp"

#include <algorithm>

#include "runtime/backends/cuda/cuda_errors.hpp"
#include "runtime/backends/cuda/cuda_stream.hpp"
#include "runtime/backends/cuda/kernels/attend_decode.hpp"
#include "runtime/backends/cuda/kernels/attend_prompt.hpp"
#include "runtime/backends/cuda/kernels/elementwise.hpp"
#include "runtime/backends/cuda/kernels/embed.hpp"
#include "runtime/backends/cuda/kernels/settle.hpp"
#include "runtime/backends/cuda/kernels/split.hpp"
#include "runtime/backends/cuda/kernels/store.hpp"
#include "runtime/backends/cuda/linear_product.hpp"
#include "runtime/backends/cuda/weight_layout.hpp"
#include "runtime/base/error.hpp"
#include "runtime/device/checks.hpp"

namespace hydrant::cuda {
namespace {

// Checks, then does work(args, stream) when it is the stream's turn to issue it.
template <class Args, class Work>
void issue(Stream& stream, const Args& args, const Work& work) {
  check(args);
  static_cast<CudaStream&>(stream).issue(args, work);
}

// The same where one launcher does all of it.
template <class Args>
void issue(Stream& stream, const Args& args, std::string_view name,
           cudaError_t (*launcher)(cudaStream_t, const Args&)) {
  issue(stream, args,
        [name, launcher](const Args& a, CudaStream& s) { check(launcher(s.handle(), a), name); });
}
template <class Args>
void issue(Stream& stream, const Args& args, std::string_view name,
           cudaError_t (*launcher)(cudaStream_t, KernelFault*, const Args&)) {
  issue(stream, args, [name, launcher](const Args& a, CudaStream& s) {
    check(launcher(s.handle(), s.fault(), a), name);
  });
}

}  // namespace

size_t CudaOps::scratch_bytes(const WorkSize& w) const {
  return std::max(
      linear_bytes(w.tokens, w.width),
      attend_decode_bytes(w.shape, w.rows, w.slots, w.last_position >= 0, multiprocessors_));
}

Activations CudaOps::activations(DType format) const {
  if (is_quantised(format)) return Activations::int8;
  if (format == DType::f16) return Activations::f16;
  return format == DType::bf16 ? Activations::bf16 : Activations::f32;
}

size_t CudaOps::panel_bytes(DType format, int64_t k) const { return cuda::panel_bytes(format, k); }

void CudaOps::pack_panel(DType format, int64_t k, std::span<const std::byte* const> rows,
                         std::byte* panel) const {
  cuda::pack_panel(format, k, rows, panel);
}

size_t CudaOps::kv_run_bytes(DType dtype, int32_t head_dim) const {
  ensure(dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16,
         "keys and values are kept in f32, f16 or bf16, not in {}", hydrant::name(dtype));
  ensure(head_dim > 0 && head_dim % 8 == 0 && head_dim <= kMostHeadDim,
         "head_dim {} is not a multiple of 8 from 8 to {}", head_dim, kMostHeadDim);
  return size_t(2 * kRunSlots * row_bytes(dtype, head_dim));
}

void CudaOps::embed(Stream& stream, const EmbedArgs& args) {
  issue(stream, args, "embed", cuda::embed);
}
void CudaOps::rotary_table(Stream& stream, const RotaryTableArgs& args) {
  issue(stream, args, "rotary_table", cuda::rotary_table);
}
void CudaOps::normalize(Stream& stream, const NormalizeArgs& args) {
  issue(stream, args, "normalize", cuda::normalize);
}
void CudaOps::linear(Stream& stream, const LinearArgs& args) {
  issue(stream, args, [processors = multiprocessors_](const LinearArgs& a, CudaStream& s) {
    cuda::linear(s, a, processors);
  });
}
void CudaOps::gate(Stream& stream, const GateArgs& args) {
  issue(stream, args, "gate", cuda::gate);
}
void CudaOps::gather(Stream& stream, const GatherArgs& args) {
  issue(stream, args, "gather", cuda::gather);
}
void CudaOps::split_decode(Stream& stream, const SplitDecodeArgs& args) {
  issue(stream, args, "split_decode", cuda::split_decode);
}
void CudaOps::split_prompt(Stream& stream, const SplitPromptArgs& args) {
  issue(stream, args, "split_prompt", cuda::split_prompt);
}
void CudaOps::attend_prompt(Stream& stream, const AttendPromptArgs& args) {
  issue(stream, args, [](const AttendPromptArgs& a, CudaStream& s) {
    check(cuda::attend_prompt(s.handle(), a, capability(s.device())), "attend_prompt");
  });
}
void CudaOps::summarize_prompt(Stream& stream, const SummarizePromptArgs& args) {
  issue(stream, args, [](const SummarizePromptArgs& a, CudaStream& s) {
    check(cuda::summarize_prompt(s.handle(), a, capability(s.device())), "summarize_prompt");
  });
}
void CudaOps::store_prompt(Stream& stream, const StorePromptArgs& args) {
  issue(stream, args, "store_prompt", cuda::store_prompt);
}
void CudaOps::attend_decode(Stream& stream, const AttendDecodeArgs& args) {
  issue(stream, args, [processors = multiprocessors_](const AttendDecodeArgs& a, CudaStream& s) {
    void* const scratch = s.scratch(attend_decode_bytes(
        a.shape, int64_t(a.segments.size()), a.cache.slots, bool(a.ranks.table), processors));
    check(cuda::attend_decode(s.handle(), s.fault(), a, scratch, processors), "attend_decode");
  });
}
void CudaOps::settle(Stream& stream, const SettleArgs& args) {
  issue(stream, args, "settle", cuda::settle);
}
void CudaOps::store_decode(Stream& stream, const StoreDecodeArgs& args) {
  issue(stream, args, "store_decode", cuda::store_decode);
}
void CudaOps::summarize_logits(Stream& stream, const SummarizeLogitsArgs& args) {
  issue(stream, args, "summarize_logits", cuda::summarize_logits);
}

}  // namespace hydrant::cuda
