#include "test/end_to_end/recording_ops.hpp"

#include "runtime/device/checks.hpp"
#include "test/end_to_end/recording_device.hpp"

namespace hydrant::test {
namespace {

// One operation on one lane.
class Touch {
 public:
  Touch(Stream& stream, std::string_view operation) : lane_(static_cast<RecordingStream&>(stream)) {
    lane_.begin(operation);
  }
  Touch& in(const ConstTensor& t) {
    lane_.reads(t.data, size_t(row_bytes(t.dtype, t.shape.count())));
    return *this;
  }
  Touch& out(const Tensor& t) {
    lane_.writes(t.data, size_t(row_bytes(t.dtype, t.shape.count())));
    return *this;
  }
  Touch& in(const Weight& w) {
    lane_.reads(w.panels, size_t((w.n + kPanelRows - 1) / kPanelRows) * w.panel_bytes);
    return *this;
  }
  Touch& kv(const CacheView& view, int32_t place, bool write) {
    return bytes(view.row(place).data, view.place_bytes, write);
  }
  Touch& scores(const CacheView& view, int32_t place, bool write) {
    return bytes(view.scores_of(place, 0), per_place(view) * sizeof(float), write);
  }
  Touch& positions(const CacheView& view, int32_t place, bool write) {
    return bytes(view.positions_of(place, 0), per_place(view) * sizeof(int32_t), write);
  }
  Touch& victims(const CacheView& view, int32_t place, bool write) {
    return bytes(view.victim + view.head_index(place, 0), size_t(view.kv_heads) * sizeof(int32_t),
                 write);
  }
  Touch& prompt(const KvRuns& runs, int32_t length, int32_t kv_heads, bool write) {
    const size_t used = size_t((length + kRunSlots - 1) / kRunSlots) * runs.run_bytes;
    for (int32_t h = 0; runs.data && h < kv_heads; h++)
      bytes(runs.data + size_t(h) * runs.head_bytes, used, write);
    return *this;
  }
  Touch& statistics(const PromptSegment& s, int32_t kv_heads, bool write) {
    const size_t size = size_t(s.stats_stride) * size_t(kv_heads) * sizeof(float);
    return bytes(s.sum, size, write).bytes(s.last, size, write);
  }

 private:
  static size_t per_place(const CacheView& view) {
    return size_t(view.kv_heads) * size_t(view.slots);
  }
  Touch& bytes(const void* at, size_t size, bool write) {
    write ? lane_.writes(at, size) : lane_.reads(at, size);
    return *this;
  }
  RecordingStream& lane_;
};

class RecordingOps final : public Ops {
 public:
  size_t scratch_bytes(const WorkSize&) const override { return 0; }
  size_t panel_bytes(DType format, int64_t k) const override {
    return size_t(kPanelRows * row_bytes(format, k));
  }
  void pack_panel(DType, int64_t, std::span<const std::byte* const>, std::byte*) const override {}
  size_t kv_run_bytes(DType dtype, int32_t head_dim) const override {
    return size_t(kRunSlots * 2 * row_bytes(dtype, head_dim));
  }

  void embed(Stream& stream, const EmbedArgs& a) override {
    check(a);
    Touch(stream, "embed").in(a.indices).in(a.table).out(a.out);
  }
  void rotary_table(Stream& stream, const RotaryTableArgs& a) override {
    check(a);
    Touch(stream, "rotary_table").in(a.positions).in(a.inverse_frequency).out(a.out);
  }
  void normalize(Stream& stream, const NormalizeArgs& a) override {
    check(a);
    Touch(stream, "normalize").in(a.in).in(a.gain).in(a.bias).out(a.out);
  }
  void linear(Stream& stream, const LinearArgs& a) override {
    check(a);
    Touch touch(stream, "linear");
    for (const Weight& w : a.parts) touch.in(w);
    touch.in(a.in).in(a.bias).in(a.residual).out(a.out);
  }
  void gate(Stream& stream, const GateArgs& a) override {
    check(a);
    Touch(stream, "gate").in(a.in).out(a.out);
  }
  void gather(Stream& stream, const GatherArgs& a) override {
    check(a);
    Touch(stream, "gather").in(a.indices).in(a.in).out(a.out);
  }
  void split_decode(Stream& stream, const SplitDecodeArgs& a) override {
    check(a);
    Touch touch(stream, "split_decode");
    touch.in(a.qkv).in(a.rotary.table).out(a.q);
    for (const Segment& s : a.segments)
      touch.kv(a.cache, s.place, true).positions(a.cache, s.place, true);
  }
  void split_prompt(Stream& stream, const SplitPromptArgs& a) override {
    check(a);
    Touch touch(stream, "split_prompt");
    touch.in(a.qkv).in(a.rotary.table).out(a.q);
    for (const PromptSegment& s : a.segments)
      touch.prompt(s.kv, s.length, a.shape.kv_heads, true)
          .prompt(s.raw, s.length, a.shape.kv_heads, true);
  }
  void attend_prompt(Stream& stream, const AttendPromptArgs& a) override {
    check(a);
    Touch touch(stream, "attend_prompt");
    touch.in(a.q).out(a.out).out(a.lse);
    for (const PromptSegment& s : a.segments) touch.prompt(s.kv, s.length, a.shape.kv_heads, false);
  }
  void summarize_prompt(Stream& stream, const SummarizePromptArgs& a) override {
    check(a);
    Touch touch(stream, "summarize_prompt");
    touch.in(a.q).in(a.lse);
    for (const PromptSegment& s : a.segments)
      touch.prompt(s.kv, s.length, a.shape.kv_heads, false).statistics(s, a.shape.kv_heads, true);
  }
  void store_prompt(Stream& stream, const StorePromptArgs& a) override {
    check(a);
    const int32_t place = a.prompt.segment.place;
    Touch(stream, "store_prompt")
        .prompt(a.prompt.kv, a.prompt.length, a.shape.kv_heads, false)
        .prompt(a.prompt.raw, a.prompt.length, a.shape.kv_heads, false)
        .statistics(a.prompt, a.shape.kv_heads, false)
        .kv(a.to, place, true)
        .scores(a.to, place, true)
        .positions(a.to, place, true);
  }
  void attend_decode(Stream& stream, const AttendDecodeArgs& a) override {
    check(a);
    Touch touch(stream, "attend_decode");
    touch.in(a.q).in(a.ranks.table).out(a.out).out(a.logits).out(a.lse);
    for (const Segment& s : a.segments)
      touch.kv(a.cache, s.place, false).positions(a.cache, s.place, false);
  }
  void settle(Stream& stream, const SettleArgs& a) override {
    check(a);
    Touch touch(stream, "settle");
    touch.in(a.logits).in(a.lse);
    for (const Segment& s : a.segments)
      touch.positions(a.cache, s.place, false)
          .scores(a.cache, s.place, true)
          .victims(a.cache, s.place, true);
  }
  void store_decode(Stream& stream, const StoreDecodeArgs& a) override {
    check(a);
    Touch touch(stream, "store_decode");
    for (const Segment& s : a.segments)
      touch.kv(a.from, s.place, false)
          .victims(a.from, s.place, false)
          .kv(a.to, s.place, true)
          .scores(a.to, s.place, true)
          .positions(a.to, s.place, true);
  }
  // Everybody's next token is 0.
  void summarize_logits(Stream& stream, const SummarizeLogitsArgs& a) override {
    check(a);
    Touch(stream, "summarize_logits").in(a.logits).out(a.best).out(a.lse);
    for (int64_t row = 0; row < a.best.shape[0]; row++) {
      a.best.as<int32_t>()[row] = 0;
      a.lse.as<float>()[row] = 1;
    }
  }
};

}  // namespace

std::unique_ptr<Ops> recording_ops() { return std::make_unique<RecordingOps>(); }

}  // namespace hydrant::test
