#include "runtime/device/checks.hpp"

#include <cmath>

#include "runtime/device/check_support.hpp"

namespace hydrant {
namespace {

constexpr DType f32 = DType::f32, i32 = DType::i32;

int64_t qkv_width(const HeadShape& s) {
  return (int64_t{s.heads} + 2 * int64_t{s.kv_heads}) * s.head_dim;
}

// Tokens of a tensor [t, heads, head_dim].
int64_t tokens_of(const Checker& c, std::string_view argument, const ConstTensor& t,
                  const HeadShape& s) {
  c.heads(s);
  c.rank(argument, t, f32, 3);
  c.tensor(argument, t, f32, {t.shape[0], s.heads, s.head_dim});
  return t.shape[0];
}

void cache_fits(const Checker& c, const CacheView& view, const HeadShape& s) {
  c.cache("cache", view);
  c.holds(view.kv_heads == s.kv_heads && view.head_dim == s.head_dim,
          "cache has {} kv heads, {} wide, expected {}, {} wide", view.kv_heads, view.head_dim,
          s.kv_heads, s.head_dim);
}

}  // namespace

void check(const EmbedArgs& args) {
  const Checker c("embed");
  c.rank("indices", args.indices, i32, 1);
  c.holds(args.table && args.table.n > 0 && args.table.k > 0, "table is missing");
  c.tensor("out", args.out, f32, {args.indices.shape[0], args.table.k});
}

void check(const RotaryTableArgs& args) {
  const Checker c("rotary_table");
  c.rank("positions", args.positions, i32, 1);
  c.rank("inverse_frequency", args.inverse_frequency, f32, 1);
  c.tensor("out", args.out, f32, {args.positions.shape[0], args.inverse_frequency.shape[0], 2});
}

void check(const NormalizeArgs& args) {
  const Checker c("normalize");
  c.rank("in", args.in, f32, 2);
  const int64_t width = args.in.shape[1];
  c.tensor("gain", args.gain, f32, {width});
  c.optional("bias", args.bias, f32, {width});
  c.holds(args.epsilon >= 0 && std::isfinite(args.epsilon), "epsilon is {}", args.epsilon);
  c.tensor("out", args.out, f32, args.in.shape);
  c.same_or_apart("in", args.in, "out", args.out);
}

void check(const LinearArgs& args) {
  const Checker c("linear");
  c.rank("in", args.in, f32, 2);
  int64_t n = 0;
  bool ended = false;
  for (const Weight& w : args.parts) {
    c.holds(!w || !ended, "a part follows a missing one");
    ended = !w;
    if (!w) continue;
    c.holds(w.n > 0 && w.k == args.in.shape[1] && w.panel_bytes > 0,
            "a part is {} [{}, {}] in panels of {} bytes, expected {} columns", name(w.format), w.n,
            w.k, w.panel_bytes, args.in.shape[1]);
    n += w.n;
  }
  c.holds(n > 0, "parts are missing");
  c.optional("bias", args.bias, f32, {n});
  c.optional("residual", args.residual, f32, {args.in.shape[0], n});
  c.tensor("out", args.out, f32, {args.in.shape[0], n});
  c.apart("in", args.in, "out", args.out);
  c.same_or_apart("residual", args.residual, "out", args.out);
}

void check(const GateArgs& args) {
  const Checker c("gate");
  c.rank("in", args.in, f32, 2);
  c.rank("out", args.out, f32, 2);
  c.tensor("in", args.in, f32, {args.out.shape[0], 2 * args.out.shape[1]});
  c.apart("in", args.in, "out", args.out);
}

void check(const GatherArgs& args) {
  const Checker c("gather");
  c.rank("indices", args.indices, i32, 1);
  c.rank("in", args.in, f32, 2);
  c.tensor("out", args.out, f32, {args.indices.shape[0], args.in.shape[1]});
  c.apart("in", args.in, "out", args.out);
}

void check(const SplitDecodeArgs& args) {
  const Checker c("split_decode");
  const int64_t tokens = tokens_of(c, "q", args.q, args.shape);
  c.tensor("qkv", args.qkv, f32, {tokens, qkv_width(args.shape)});
  c.rotary("rotary", args.rotary, args.shape.head_dim, tokens);
  cache_fits(c, args.cache, args.shape);
  c.decode_segments(args.segments, tokens, args.cache);
  c.apart("qkv", args.qkv, "q", args.q);
}

void check(const SplitPromptArgs& args) {
  const Checker c("split_prompt");
  const int64_t tokens = tokens_of(c, "q", args.q, args.shape);
  c.tensor("qkv", args.qkv, f32, {tokens, qkv_width(args.shape)});
  c.rotary("rotary", args.rotary, args.shape.head_dim, tokens);
  c.kv_dtype(args.dtype);
  c.prompt_segments(args.segments, tokens, args.shape);
  c.apart("qkv", args.qkv, "q", args.q);
}

void check(const AttendPromptArgs& args) {
  const Checker c("attend_prompt");
  const int64_t tokens = tokens_of(c, "q", args.q, args.shape);
  c.kv_dtype(args.dtype);
  c.prompt_segments(args.segments, tokens, args.shape);
  c.holds(std::isfinite(args.scale), "scale is {}", args.scale);
  c.tensor("out", args.out, f32, args.q.shape);
  c.tensor("lse", args.lse, f32, {tokens, args.shape.heads});
  c.apart("q", args.q, "out", args.out);
}

void check(const SummarizePromptArgs& args) {
  const Checker c("summarize_prompt");
  const int64_t tokens = tokens_of(c, "q", args.q, args.shape);
  c.tensor("lse", args.lse, f32, {tokens, args.shape.heads});
  c.kv_dtype(args.dtype);
  c.holds(std::isfinite(args.scale), "scale is {}", args.scale);
  c.prompt_segments(args.segments, tokens, args.shape);
  for (const PromptSegment& s : args.segments)
    if (s.sum)
      c.holds(s.last && s.stats_stride >= s.length,
              "statistics of a segment are {} a head{}, for a prompt of {}", s.stats_stride,
              s.last ? "" : " without the last query's", s.length);
}

void check(const StorePromptArgs& args) {
  const Checker c("store_prompt");
  c.heads(args.shape);
  cache_fits(c, args.to, args.shape);
  const PromptSegment& p = args.prompt;
  const int32_t place = p.segment.place;
  c.holds(p.length > 0, "prompt has {} tokens", p.length);
  c.holds(args.to.has(place), "prompt has place {}, expected {} to {}", place, args.to.first,
          args.to.first + args.to.places - 1);
  const policy::RowPlan& plan = args.to.plans[place];
  const bool fits = p.length <= plan.slots.capacity();
  c.holds(plan.slots.capacity() > 0 && (fits ? p.length : plan.slots.capacity()) <= args.to.slots,
          "a plan of {} slots for a prompt of {}, in a cache of {}", plan.slots.capacity(),
          p.length, args.to.slots);
  c.runs("kv of the prompt", p.kv, p.length, args.shape.kv_heads);
  c.holds(p.kv.run_bytes == args.to.kv.run_bytes, "runs have {} bytes, expected {}", p.kv.run_bytes,
          args.to.kv.run_bytes);
  if (p.raw.data) c.runs("raw of the prompt", p.raw, p.length, args.shape.kv_heads);
  c.holds(fits || p.kv.data != args.to.row(place).data,
          "a prompt of {} lies in its home of {} slots", p.length, plan.slots.capacity());
  if (plan.scored)
    c.holds(p.sum && p.last && args.to.score && p.stats_stride >= p.length,
            "a scored prompt has no {}", args.to.score ? "statistics" : "scores in its cache");
}

void check(const AttendDecodeArgs& args) {
  const Checker c("attend_decode");
  const int64_t tokens = tokens_of(c, "q", args.q, args.shape);
  cache_fits(c, args.cache, args.shape);
  c.decode_segments(args.segments, tokens, args.cache);
  c.holds(std::isfinite(args.scale), "scale is {}", args.scale);
  c.tensor("out", args.out, f32, args.q.shape);
  c.optional("logits", args.logits, f32, {tokens, args.shape.heads, args.cache.slots});
  c.optional("lse", args.lse, f32, {tokens, args.shape.heads});
  c.apart("q", args.q, "out", args.out);
  int64_t ranks = 0;
  for (const Segment& s : args.segments) {
    const policy::RowPlan& plan = args.cache.plans[s.place];
    c.holds(!plan.scored || (args.logits.data && args.lse.data),
            "{} is missing, but place {} is scored", args.logits.data ? "lse" : "logits", s.place);
    if (plan.positions == policy::Positions::cache)
      ranks = std::max(ranks, int64_t{plan.slots.live_rows(s.first)});
  }
  c.rotary("ranks", args.ranks, args.shape.head_dim, ranks);
}

void check(const SettleArgs& args) {
  const Checker c("settle");
  c.heads(args.shape);
  cache_fits(c, args.cache, args.shape);
  c.holds(args.cache.victim != nullptr, "cache has no victims");
  int64_t tokens = args.logits.shape[0];
  if (!args.logits)
    for (const Segment& s : args.segments) tokens = std::max(tokens, int64_t{s.token} + s.count);
  c.decode_segments(args.segments, tokens, args.cache);
  for (const Segment& s : args.segments)
    c.holds(!args.cache.plans[s.place].scored || (args.logits && args.lse && args.cache.score),
            "place {} is scored, but {} missing", s.place,
            !args.logits ? "logits are"
            : !args.lse  ? "lse is"
                         : "the cache's scores are");
  c.optional("logits", args.logits, f32, {tokens, args.shape.heads, args.cache.slots});
  c.optional("lse", args.lse, f32, {tokens, args.shape.heads});
}

void check(const StoreDecodeArgs& args) {
  const Checker c("store_decode");
  c.cache("from", args.from);
  c.cache("to", args.to);
  c.holds(args.from.kv_heads == args.to.kv_heads && args.from.head_dim == args.to.head_dim &&
              args.from.dtype == args.to.dtype && args.from.kv.run_bytes == args.to.kv.run_bytes,
          "from has {} kv heads of {} {}, to has {} of {} {}", args.from.kv_heads,
          args.from.head_dim, name(args.from.dtype), args.to.kv_heads, args.to.head_dim,
          name(args.to.dtype));
  c.holds(args.from.victim != nullptr, "from has no victims");
  int64_t tokens = 0;
  for (const Segment& s : args.segments) tokens = std::max(tokens, int64_t{s.token} + s.count);
  c.decode_segments(args.segments, tokens, args.from);
  c.decode_segments(args.segments, tokens, args.to);
}

void check(const SummarizeLogitsArgs& args) {
  const Checker c("summarize_logits");
  c.rank("logits", args.logits, f32, 2);
  const int64_t rows = args.logits.shape[0];
  c.holds(rows == 0 || args.logits.shape[1] > 0, "logits have no columns");
  c.tensor("best", args.best, i32, {rows});
  c.tensor("lse", args.lse, f32, {rows});
}

}  // namespace hydrant
