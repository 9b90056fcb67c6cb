// A device that only holds weights: a panel is its 16 rows as they stand in the file.
#pragma once
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/error.hpp"
#include "runtime/device/device.hpp"

namespace hydrant::test {

class RowOps : public Ops {
 public:
  size_t scratch_bytes(const WorkSize&) const override { return 0; }
  Activations activations(DType format) const override {
    if (is_quantised(format)) return Activations::int8;
    return format == DType::bf16 ? Activations::bf16 : Activations::f32;
  }
  size_t panel_bytes(DType format, int64_t k) const override {
    return size_t(row_bytes(format, k) * kPanelRows);
  }
  void pack_panel(DType format, int64_t k, std::span<const std::byte* const> rows,
                  std::byte* panel) const override {
    const auto row = size_t(row_bytes(format, k));
    std::memset(panel, 0, panel_bytes(format, k));
    for (size_t i = 0; i < rows.size(); i++) std::memcpy(panel + i * row, rows[i], row);
  }
  size_t kv_run_bytes(DType, int32_t) const override { none(); }
  void embed(Stream&, const EmbedArgs&) override { none(); }
  void rotary_table(Stream&, const RotaryTableArgs&) override { none(); }
  void normalize(Stream&, const NormalizeArgs&) override { none(); }
  void linear(Stream&, const LinearArgs&) override { none(); }
  void gate(Stream&, const GateArgs&) override { none(); }
  void gather(Stream&, const GatherArgs&) override { none(); }
  void split_decode(Stream&, const SplitDecodeArgs&) override { none(); }
  void split_prompt(Stream&, const SplitPromptArgs&) override { none(); }
  void attend_prompt(Stream&, const AttendPromptArgs&) override { none(); }
  void summarize_prompt(Stream&, const SummarizePromptArgs&) override { none(); }
  void store_prompt(Stream&, const StorePromptArgs&) override { none(); }
  void attend_decode(Stream&, const AttendDecodeArgs&) override { none(); }
  void settle(Stream&, const SettleArgs&) override { none(); }
  void store_decode(Stream&, const StoreDecodeArgs&) override { none(); }
  void summarize_logits(Stream&, const SummarizeLogitsArgs&) override { none(); }

 private:
  [[noreturn]] static void none() { fail(Fault::internal, "this device computes nothing"); }
};

class RowDevice : public Device {
 public:
  explicit RowDevice(int threads = 2) : threads_(threads) {}
  std::string_view name() const override { return "rows"; }
  std::string describe() const override { return "rows"; }
  std::string_view isa() const override { return "none"; }
  int threads() const override { return threads_; }
  Buffer allocate(Memory memory, size_t bytes, std::string_view) override {
    allocations++;
    return Buffer(::operator new (bytes, std::align_val_t{64}), bytes, memory,
                  [](void* data, size_t) { ::operator delete (data, std::align_val_t{64}); });
  }
  size_t available(Memory) const override { return size_t{1} << 40; }
  bool is_host() const override { return true; }
  std::unique_ptr<Stream> make_stream(std::string_view, bool) override { return nullptr; }
  std::unique_ptr<Event> make_event() override { return nullptr; }
  Ops& ops() override { return ops_; }

  int allocations = 0;

 private:
  int threads_;
  RowOps ops_;
};

// Row i of a weight that such a device has packed.
inline const std::byte* row_of(const Weight& w, int64_t i) {
  return static_cast<const std::byte*>(w.panels) + size_t(i / kPanelRows) * w.panel_bytes +
         size_t(i % kPanelRows * row_bytes(w.format, w.k));
}

}  // namespace hydrant::test
