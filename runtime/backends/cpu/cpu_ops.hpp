// The operations on the CPU: checked, then run by kernels on the stream's thread and the pool.
#pragma once
#include <mutex>
#include <vector>

#include "runtime/backends/cpu/isa.hpp"
#include "runtime/backends/cpu/kernels/attend.hpp"
#include "runtime/backends/cpu/kernels/elementwise.hpp"
#include "runtime/backends/cpu/kernels/linear.hpp"
#include "runtime/backends/cpu/thread_pool.hpp"
#include "runtime/device/ops.hpp"

namespace hydrant::cpu {

// Expects streams made by CpuDevice. The pool must outlive the last operation.
class CpuOps final : public Ops {
 public:
  CpuOps(ThreadPool& pool, Isa isa) : pool_(pool), isa_(isa) {}

  size_t scratch_bytes(const WorkSize& work) const override;
  Activations activations(DType format) const override;
  size_t panel_bytes(DType format, int64_t k) const override;
  void pack_panel(DType format, int64_t k, std::span<const std::byte* const> rows,
                  std::byte* panel) const override;
  size_t kv_run_bytes(DType dtype, int32_t head_dim) const override;

  void embed(Stream& stream, const EmbedArgs& args) override;
  void rotary_table(Stream& stream, const RotaryTableArgs& args) override;
  void normalize(Stream& stream, const NormalizeArgs& args) override;
  void linear(Stream& stream, const LinearArgs& args) override;
  void gate(Stream& stream, const GateArgs& args) override;
  void gather(Stream& stream, const GatherArgs& args) override;
  void split_decode(Stream& stream, const SplitDecodeArgs& args) override;
  void split_prompt(Stream& stream, const SplitPromptArgs& args) override;
  void attend_prompt(Stream& stream, const AttendPromptArgs& args) override;
  void summarize_prompt(Stream& stream, const SummarizePromptArgs& args) override;
  void store_prompt(Stream& stream, const StorePromptArgs& args) override;
  void attend_decode(Stream& stream, const AttendDecodeArgs& args) override;
  void settle(Stream& stream, const SettleArgs& args) override;
  void store_decode(Stream& stream, const StoreDecodeArgs& args) override;
  void summarize_logits(Stream& stream, const SummarizeLogitsArgs& args) override;

 private:
  template <class Args, class Kernel>
  void run(Stream& stream, const Args& args, const Kernel& kernel);

  ThreadPool& pool_;
  Isa isa_;
  std::mutex busy_;  // held by the operation that has the pool and the scratch below
  LinearScratch packed_;
  AttendScratch attend_;
  std::vector<float> keys_;
  std::vector<LogitsPiece> pieces_;
};

}  // namespace hydrant::cpu
