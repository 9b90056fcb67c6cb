#include "runtime/backends/cpu/cpu_ops.hpp"

#include <algorithm>

#include "runtime/backends/cpu/host_stream.hpp"
#include "runtime/backends/cpu/kernels/embed.hpp"
#include "runtime/backends/cpu/kernels/kv_layout.hpp"
#include "runtime/backends/cpu/kernels/pack.hpp"
#include "runtime/backends/cpu/kernels/settle.hpp"
#include "runtime/backends/cpu/kernels/split.hpp"
#include "runtime/backends/cpu/kernels/store.hpp"
#include "runtime/base/error.hpp"
#include "runtime/device/checks.hpp"

namespace hydrant::cpu {

// Checks, then does kernel(args) on the stream, alone in the pool.
template <class Args, class Kernel>
void CpuOps::run(Stream& stream, const Args& args, const Kernel& kernel) {
  check(args);
  static_cast<HostStream&>(stream).enqueue(args, [this, kernel](const Args& a) {
    const std::lock_guard lock(busy_);
    kernel(a);
  });
}

size_t CpuOps::scratch_bytes(const WorkSize& w) const {
  const int threads = pool_.size();
  const size_t attend =
      std::max({attend_decode_bytes(w.shape, w.rows, w.slots, w.last_position, threads),
                attend_prompt_bytes(w.shape, w.prompts, int32_t(w.tokens), threads),
                summarize_prompt_bytes(w.shape, w.prompts, w.prompt_length, threads)});
  // Inputs kept in f32 take the most.
  return attend + linear_scratch_bytes(isa_, threads, w.tokens, w.width, Activations::f32);
}

Activations CpuOps::activations(DType format) const {
  if (is_quantised(format)) return Activations::int8;
  return format == DType::bf16 ? Activations::bf16 : Activations::f32;
}

size_t CpuOps::panel_bytes(DType format, int64_t k) const { return cpu::panel_bytes(format, k); }

void CpuOps::pack_panel(DType format, int64_t k, std::span<const std::byte* const> rows,
                        std::byte* panel) const {
  cpu::pack_panel(format, k, rows, panel);
}

size_t CpuOps::kv_run_bytes(DType dtype, int32_t head_dim) const {
  return cpu::kv_run_bytes(dtype, head_dim);
}

void CpuOps::embed(Stream& stream, const EmbedArgs& args) {
  run(stream, args, [this](const EmbedArgs& a) { cpu::embed(pool_, a); });
}
void CpuOps::rotary_table(Stream& stream, const RotaryTableArgs& args) {
  run(stream, args, [this](const RotaryTableArgs& a) { cpu::rotary_table(pool_, a); });
}
void CpuOps::normalize(Stream& stream, const NormalizeArgs& args) {
  run(stream, args, [this](const NormalizeArgs& a) { cpu::normalize(pool_, isa_, a); });
}
void CpuOps::linear(Stream& stream, const LinearArgs& args) {
  for (const Weight& w : args.parts)
    ensure(!w || w.activations != Activations::f16,
           "linear: a part's input is to be rounded to f16, which the processor's products do not");
  run(stream, args, [this](const LinearArgs& a) { cpu::linear(pool_, isa_, a, packed_); });
}
void CpuOps::gate(Stream& stream, const GateArgs& args) {
  run(stream, args, [this](const GateArgs& a) { cpu::gate(pool_, isa_, a); });
}
void CpuOps::gather(Stream& stream, const GatherArgs& args) {
  run(stream, args, [this](const GatherArgs& a) { cpu::gather(pool_, a); });
}
void CpuOps::split_decode(Stream& stream, const SplitDecodeArgs& args) {
  run(stream, args, [this](const SplitDecodeArgs& a) { cpu::split_decode(pool_, isa_, a, keys_); });
}
void CpuOps::split_prompt(Stream& stream, const SplitPromptArgs& args) {
  run(stream, args, [this](const SplitPromptArgs& a) { cpu::split_prompt(pool_, isa_, a, keys_); });
}
void CpuOps::attend_prompt(Stream& stream, const AttendPromptArgs& args) {
  run(stream, args,
      [this](const AttendPromptArgs& a) { cpu::attend_prompt(pool_, isa_, a, attend_); });
}
void CpuOps::summarize_prompt(Stream& stream, const SummarizePromptArgs& args) {
  run(stream, args,
      [this](const SummarizePromptArgs& a) { cpu::summarize_prompt(pool_, isa_, a, attend_); });
}
void CpuOps::store_prompt(Stream& stream, const StorePromptArgs& args) {
  run(stream, args, [this](const StorePromptArgs& a) { cpu::store_prompt(pool_, a); });
}
void CpuOps::attend_decode(Stream& stream, const AttendDecodeArgs& args) {
  run(stream, args,
      [this](const AttendDecodeArgs& a) { cpu::attend_decode(pool_, isa_, a, attend_); });
}
void CpuOps::settle(Stream& stream, const SettleArgs& args) {
  run(stream, args, [this](const SettleArgs& a) { cpu::settle(pool_, isa_, a); });
}
void CpuOps::store_decode(Stream& stream, const StoreDecodeArgs& args) {
  run(stream, args, [this](const StoreDecodeArgs& a) { cpu::store_decode(pool_, a); });
}
void CpuOps::summarize_logits(Stream& stream, const SummarizeLogitsArgs& args) {
  run(stream, args,
      [this](const SummarizeLogitsArgs& a) { cpu::summarize_logits(pool_, isa_, a, pieces_); });
}

}  // namespace hydrant::cpu
