#include "test/end_to_end/recording_ops.hpp"

#include "runtime/device/checks.hpp"

namespace hydrant::test {
namespace {

// One operation on one lane.
class Touch {
 public:
  Touch(Watch& watch, Stream& stream, std::string_view operation) : watch_(watch), stream_(stream) {
    watch_.begins(stream, operation);
  }
  Touch& in(const ConstTensor& t) {
    return bytes(t.data, size_t(row_bytes(t.dtype, t.shape.count())), false);
  }
  Touch& out(const Tensor& t) {
    return bytes(t.data, size_t(row_bytes(t.dtype, t.shape.count())), true);
  }
  Touch& in(const Weight& w) {
    return bytes(w.panels, size_t((w.n + kPanelRows - 1) / kPanelRows) * w.panel_bytes, false);
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
    if (at && size > 0) watch_.touches(stream_, at, size, write);
    return *this;
  }
  Watch& watch_;
  Stream& stream_;
};

class RecordingOps final : public Ops {
 public:
  RecordingOps(Watch& watch, Ops* inner, size_t run_scale)
      : watch_(watch), inner_(inner), run_scale_(run_scale) {}
  size_t scratch_bytes(const WorkSize& work) const override {
    return inner_ ? inner_->scratch_bytes(work) : 0;
  }
  Activations activations(DType format) const override {
    return inner_ ? inner_->activations(format) : Activations::f32;
  }
  size_t panel_bytes(DType format, int64_t k) const override {
    return inner_ ? inner_->panel_bytes(format, k) : size_t(kPanelRows * row_bytes(format, k));
  }
  void pack_panel(DType format, int64_t k, std::span<const std::byte* const> rows,
                  std::byte* panel) const override {
    if (inner_) inner_->pack_panel(format, k, rows, panel);
  }
  size_t kv_run_bytes(DType dtype, int32_t head_dim) const override {
    return inner_ ? inner_->kv_run_bytes(dtype, head_dim)
                  : run_scale_ * size_t(kRunSlots * 2 * row_bytes(dtype, head_dim));
  }

  void embed(Stream& stream, const EmbedArgs& a) override {
    check(a);
    Touch(watch_, stream, "embed").in(a.indices).in(a.table).out(a.out);
    if (inner_) inner_->embed(stream, a);
  }
  void rotary_table(Stream& stream, const RotaryTableArgs& a) override {
    check(a);
    Touch(watch_, stream, "rotary_table").in(a.positions).in(a.inverse_frequency).out(a.out);
    if (inner_) inner_->rotary_table(stream, a);
  }
  void normalize(Stream& stream, const NormalizeArgs& a) override {
    check(a);
    Touch(watch_, stream, "normalize").in(a.in).in(a.gain).in(a.bias).out(a.out);
    if (inner_) inner_->normalize(stream, a);
  }
  void linear(Stream& stream, const LinearArgs& a) override {
    check(a);
    Touch touch(watch_, stream, "linear");
    for (const Weight& w : a.parts) touch.in(w);
    touch.in(a.in).in(a.bias).in(a.residual).out(a.out);
    if (inner_) inner_->linear(stream, a);
  }
  void gate(Stream& stream, const GateArgs& a) override {
    check(a);
    Touch(watch_, stream, "gate").in(a.in).out(a.out);
    if (inner_) inner_->gate(stream, a);
  }
  void gather(Stream& stream, const GatherArgs& a) override {
    check(a);
    Touch(watch_, stream, "gather").in(a.indices).in(a.in).out(a.out);
    if (inner_) inner_->gather(stream, a);
  }
  void split_decode(Stream& stream, const SplitDecodeArgs& a) override {
    check(a);
    Touch touch(watch_, stream, "split_decode");
    touch.in(a.qkv).in(a.rotary.table).out(a.q);
    for (const Segment& s : a.segments)
      touch.kv(a.cache, s.place, true).positions(a.cache, s.place, true);
    if (inner_) inner_->split_decode(stream, a);
  }
  void split_prompt(Stream& stream, const SplitPromptArgs& a) override {
    check(a);
    Touch touch(watch_, stream, "split_prompt");
    touch.in(a.qkv).in(a.rotary.table).out(a.q);
    for (const PromptSegment& s : a.segments)
      touch.prompt(s.kv, s.length, a.shape.kv_heads, true)
          .prompt(s.raw, s.length, a.shape.kv_heads, true);
    if (inner_) inner_->split_prompt(stream, a);
  }
  void attend_prompt(Stream& stream, const AttendPromptArgs& a) override {
    check(a);
    Touch touch(watch_, stream, "attend_prompt");
    touch.in(a.q).out(a.out).out(a.lse);
    for (const PromptSegment& s : a.segments) touch.prompt(s.kv, s.length, a.shape.kv_heads, false);
    if (inner_) inner_->attend_prompt(stream, a);
  }
  void summarize_prompt(Stream& stream, const SummarizePromptArgs& a) override {
    check(a);
    Touch touch(watch_, stream, "summarize_prompt");
    touch.in(a.q).in(a.lse);
    for (const PromptSegment& s : a.segments)
      touch.prompt(s.kv, s.length, a.shape.kv_heads, false).statistics(s, a.shape.kv_heads, true);
    if (inner_) inner_->summarize_prompt(stream, a);
  }
  void store_prompt(Stream& stream, const StorePromptArgs& a) override {
    check(a);
    const int32_t place = a.prompt.segment.place;
    Touch(watch_, stream, "store_prompt")
        .prompt(a.prompt.kv, a.prompt.length, a.shape.kv_heads, false)
        .prompt(a.prompt.raw, a.prompt.length, a.shape.kv_heads, false)
        .statistics(a.prompt, a.shape.kv_heads, false)
        .kv(a.to, place, true)
        .scores(a.to, place, true)
        .positions(a.to, place, true);
    if (inner_) inner_->store_prompt(stream, a);
  }
  void attend_decode(Stream& stream, const AttendDecodeArgs& a) override {
    check(a);
    Touch touch(watch_, stream, "attend_decode");
    touch.in(a.q).in(a.ranks.table).out(a.out).out(a.logits).out(a.lse);
    for (const Segment& s : a.segments)
      touch.kv(a.cache, s.place, false).positions(a.cache, s.place, false);
    if (inner_) inner_->attend_decode(stream, a);
  }
  void settle(Stream& stream, const SettleArgs& a) override {
    check(a);
    Touch touch(watch_, stream, "settle");
    touch.in(a.logits).in(a.lse);
    for (const Segment& s : a.segments)
      touch.positions(a.cache, s.place, false)
          .scores(a.cache, s.place, true)
          .victims(a.cache, s.place, true);
    if (inner_) inner_->settle(stream, a);
  }
  void store_decode(Stream& stream, const StoreDecodeArgs& a) override {
    check(a);
    Touch touch(watch_, stream, "store_decode");
    for (const Segment& s : a.segments)
      touch.kv(a.from, s.place, false)
          .victims(a.from, s.place, false)
          .kv(a.to, s.place, true)
          .scores(a.to, s.place, true)
          .positions(a.to, s.place, true);
    if (inner_) inner_->store_decode(stream, a);
  }
  // Where nothing is computed, everybody's next token is 0.
  void summarize_logits(Stream& stream, const SummarizeLogitsArgs& a) override {
    check(a);
    Touch(watch_, stream, "summarize_logits").in(a.logits).out(a.best).out(a.lse);
    if (inner_) return inner_->summarize_logits(stream, a);
    for (int64_t row = 0; row < a.best.shape[0]; row++) {
      a.best.as<int32_t>()[row] = 0;
      a.lse.as<float>()[row] = 1;
    }
  }

 private:
  Watch& watch_;
  Ops* inner_;
  size_t run_scale_;
};

}  // namespace

std::unique_ptr<Ops> recording_ops(Watch& watch, Ops* inner, size_t run_scale) {
  return std::make_unique<RecordingOps>(watch, inner, run_scale);
}

}  // namespace hydrant::test
