// One bad argument at a time must be named, and good ones pass.
#include "runtime/device/checks.hpp"

#include <catch2/catch.hpp>
#include <functional>
#include <limits>

#include "runtime/base/error.hpp"

using namespace hydrant;

namespace {

// Memory that checks may only point at.
alignas(64) std::byte memory[1 << 16];
Tensor tensor(Shape shape, size_t offset, DType dtype = DType::f32) {
  return {memory + offset, dtype, shape};
}
Tensor ids(Shape shape, size_t offset) { return tensor(shape, offset, DType::i32); }

template <class Args>
struct Bad {
  const char* word;  // of the message
  std::function<void(Args&)> spoil;
};

template <class Args>
void expect_named(const char* op, const Args& good, const std::vector<Bad<Args>>& cases) {
  CHECK_NOTHROW(check(good));
  for (const Bad<Args>& bad : cases) {
    Args args = good;
    bad.spoil(args);
    INFO(op << " with a bad " << bad.word);
    try {
      check(args);
      FAIL_CHECK("passed");
    } catch (const Error& e) {
      CHECK(e.fault() == Fault::internal);
      CHECK_THAT(e.what(), Catch::StartsWith(std::string(op) + ": ") && Catch::Contains(bad.word));
    }
  }
}

constexpr HeadShape kShape{4, 2, 8};
constexpr int32_t kSlots = 32;
const policy::RowPlan kPlans[2] = {{{0, 4, 4}, policy::Id::h2o, policy::Positions::original, true},
                                   {{0, 0, 31}, policy::Id::full, policy::Positions::cache, false}};
const Segment kSegments[2] = {{0, 20, 1, 0}, {1, 30, 1, 2}};

KvRuns runs(int64_t slots) { return {memory, size_t(slots / kRunSlots) * 512, 512}; }
CacheView cache() {
  CacheView view;
  view.kv = runs(kSlots);
  view.place_bytes = 2048;
  view.score = reinterpret_cast<float*>(memory);
  view.position = view.victim = reinterpret_cast<int32_t*>(memory);
  view.plans = kPlans;
  view.places = 2, view.kv_heads = 2, view.head_dim = 8, view.slots = kSlots;
  return view;
}
PromptSegment prompt_segment() {
  return {{0, 16, 3, 0},
          runs(32),
          {},
          reinterpret_cast<float*>(memory),
          reinterpret_cast<float*>(memory),
          20,
          20};
}

// Spoilers that several operations share.
template <class Args>
std::vector<Bad<Args>> bad_caches() {
  return {{"places", [](Args& a) { a.cache.places = 0; }},
          {"33 slots", [](Args& a) { a.cache.slots = 33; }},
          {"i32", [](Args& a) { a.cache.dtype = DType::i32; }},
          {"memory", [](Args& a) { a.cache.kv.data = nullptr; }},
          {"bytes a head", [](Args& a) { a.cache.kv.head_bytes = 512; }},
          {"plans", [](Args& a) { a.cache.plans = nullptr; }},
          {"positions", [](Args& a) { a.cache.position = nullptr; }},
          {"16 wide", [](Args& a) { a.cache.head_dim = 16; }}};
}
template <class Args>
std::vector<Bad<Args>> bad_segments() {
  static std::array<Segment, 2> s[6];
  for (auto& pair : s) std::copy(kSegments, kSegments + 2, pair.begin());
  s[0][1].count = 2;
  s[1][1].place = 2;
  s[2][1].token = 0;   // the first one's
  s[3][1].token = 3;   // of three tokens
  s[4][1].first = 40;  // lands in slot 31 + 1
  s[4][1].place = 0;
  s[5][1].first = -1;
  static const policy::RowPlan wide[2] = {{{0, 40, 0}, policy::Id::h2o}, kPlans[1]};
  return {{"tokens", [](Args& a) { a.segments = s[0]; }},
          {"place 2", [](Args& a) { a.segments = s[1]; }},
          {"tokens [0, 1)", [](Args& a) { a.segments = s[2]; }},
          {"tokens [3, 4)", [](Args& a) { a.segments = s[3]; }},
          {"slot 40", [](Args& a) { a.segments = s[4], a.cache.plans = wide; }},
          {"position -1", [](Args& a) { a.segments = s[5]; }}};
}
template <class Args>
std::vector<Bad<Args>> bad_prompts() {
  static PromptSegment s[4];
  std::fill(s, s + 4, prompt_segment());
  s[0].length = 18;
  s[1].segment.count = 0;
  s[2].kv.data = nullptr;
  s[3].kv.head_bytes = 512;
  return {{"prompt of 18",
           [](Args& a) {
             a.segments = {&s[0], 1};
           }},
          {"0 tokens",
           [](Args& a) {
             a.segments = {&s[1], 1};
           }},
          {"kv of a segment",
           [](Args& a) {
             a.segments = {&s[2], 1};
           }},
          {"for 20 slots", [](Args& a) {
             a.segments = {&s[3], 1};
           }}};
}
template <class Args>
std::vector<Bad<Args>> join(std::vector<Bad<Args>> a, const std::vector<Bad<Args>>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

const Rotary kRotary{4, tensor({3, 2, 2}, 40000)};

}  // namespace

TEST_CASE("arguments of operations over rows are checked") {
  Weight w;
  w.panels = memory, w.n = 32, w.k = 8, w.panel_bytes = 512;

  expect_named<EmbedArgs>("embed", {ids({3}, 0), 2, w, false, false, tensor({3, 8}, 64)},
                          {{"indices", [](auto& a) { a.indices.dtype = DType::f32; }},
                           {"indices is missing", [](auto& a) { a.indices.data = nullptr; }},
                           {"table", [](auto& a) { a.table.panels = nullptr; }},
                           {"out", [](auto& a) {
                              a.out.shape = {3, 9};
                            }}});
  expect_named<RotaryTableArgs>(
      "rotary_table", {ids({3}, 0), tensor({4}, 64), tensor({3, 4, 2}, 128)},
      {{"positions",
        [](auto& a) {
          a.positions.shape = {3, 1};
        }},
       {"frequency", [](auto& a) { a.inverse_frequency.dtype = DType::f16; }},
       {"out is f32 [3, 4], expected f32 [3, 4, 2]", [](auto& a) {
          a.out.shape = {3, 4};
        }}});
  expect_named<NormalizeArgs>(
      "normalize",
      {NormKind::layer, tensor({3, 8}, 0), tensor({8}, 512), tensor({8}, 1024), 1e-5f,
       tensor({3, 8}, 0)},
      {{"in", [](auto& a) { a.in.shape = {8}; }},
       {"gain", [](auto& a) { a.gain.shape = {7}; }},
       {"gain is missing", [](auto& a) { a.gain.data = nullptr; }},
       {"bias", [](auto& a) { a.bias.shape = {7}; }},
       {"epsilon", [](auto& a) { a.epsilon = -1; }},
       {"epsilon", [](auto& a) { a.epsilon = std::numeric_limits<float>::quiet_NaN(); }},
       {"out", [](auto& a) { a.out.dtype = DType::bf16; }},
       {"in and out overlap", [](auto& a) { a.out.data = memory + 32; }}});
  expect_named<LinearArgs>(
      "linear",
      {tensor({3, 8}, 0),
       {w, w, {}},
       tensor({64}, 512),
       tensor({3, 64}, 1024),
       Activation::none,
       tensor({3, 64}, 1024)},
      {{"columns",
        [](auto& a) {
          a.in.shape = {3, 9};
        }},
       {"parts", [](auto& a) { a.parts = {}; }},
       {"a part", [](auto& a) { a.parts[0] = {}; }},
       {"panels of 0 bytes", [](auto& a) { a.parts[1].panel_bytes = 0; }},
       {"bias", [](auto& a) { a.bias.shape = {32}; }},
       {"residual",
        [](auto& a) {
          a.residual.shape = {3, 32};
        }},
       {"out",
        [](auto& a) {
          a.out.shape = {3, 96};
        }},
       {"in and out", [](auto& a) { a.out.data = memory + 32, a.residual.data = nullptr; }},
       {"residual and out", [](auto& a) { a.residual.data = memory + 1088; }}});
  expect_named<GateArgs>("gate", {Activation::silu, tensor({3, 16}, 0), tensor({3, 8}, 512)},
                         {{"in",
                           [](auto& a) {
                             a.in.shape = {3, 8};
                           }},
                          {"out", [](auto& a) { a.out.shape = {24}; }},
                          {"overlap", [](auto& a) { a.out.data = memory; }}});
  expect_named<GatherArgs>("gather", {ids({2}, 0), tensor({3, 8}, 512), tensor({2, 8}, 1024)},
                           {{"indices", [](auto& a) { a.indices.dtype = DType::f32; }},
                            {"in", [](auto& a) { a.in.shape = {24}; }},
                            {"out",
                             [](auto& a) {
                               a.out.shape = {3, 8};
                             }},
                            {"overlap", [](auto& a) { a.out.data = memory + 576; }}});
  expect_named<SummarizeLogitsArgs>("summarize_logits",
                                    {tensor({2, 50}, 0), ids({2}, 512), tensor({2}, 1024)},
                                    {{"logits", [](auto& a) { a.logits.shape = {100}; }},
                                     {"columns",
                                      [](auto& a) {
                                        a.logits.shape = {2, 0};
                                      }},
                                     {"best", [](auto& a) { a.best.dtype = DType::f32; }},
                                     {"lse", [](auto& a) { a.lse.shape = {3}; }}});
}

TEST_CASE("arguments of decode steps are checked") {
  expect_named<SplitDecodeArgs>(
      "split_decode",
      {tensor({3, 64}, 0), kRotary, kShape, kSegments, cache(), tensor({3, 4, 8}, 1024)},
      join(join<SplitDecodeArgs>({{"qkv",
                                   [](auto& a) {
                                     a.qkv.shape = {3, 63};
                                   }},
                                  {"rotary", [](auto& a) { a.rotary.dims = 3; }},
                                  {"rotary", [](auto& a) { a.rotary.dims = 16; }},
                                  {"places",
                                   [](auto& a) {
                                     a.rotary.table.shape = {2, 2, 2};
                                   }},
                                  {"heads", [](auto& a) { a.shape.heads = 3; }},
                                  {"q is",
                                   [](auto& a) {
                                     a.q.shape = {3, 32};
                                   }},
                                  {"overlap", [](auto& a) { a.q.data = memory; }}},
                                 bad_caches<SplitDecodeArgs>()),
           bad_segments<SplitDecodeArgs>()));
  const Rotary ranks{4, tensor({31, 2, 2}, 40000)};
  expect_named<AttendDecodeArgs>(
      "attend_decode",
      {tensor({3, 4, 8}, 0), kShape, kSegments, cache(), ranks, 0.5f, tensor({3, 4, 8}, 1024),
       tensor({3, 4, kSlots}, 2048), tensor({3, 4}, 4096)},
      join(join<AttendDecodeArgs>(
               {{"q", [](auto& a) { a.q.dtype = DType::f16; }},
                {"out",
                 [](auto& a) {
                   a.out.shape = {3, 4, 9};
                 }},
                {"overlap", [](auto& a) { a.out.data = memory; }},
                {"scale", [](auto& a) { a.scale = std::numeric_limits<float>::infinity(); }},
                {"logits",
                 [](auto& a) {
                   a.logits.shape = {3, 4, 16};
                 }},
                {"logits is missing", [](auto& a) { a.logits.data = nullptr; }},
                {"lse is missing", [](auto& a) { a.lse.data = nullptr; }},
                {"ranks",
                 [](auto& a) {
                   a.ranks.table.shape = {30, 2, 2};
                 }}},
               bad_caches<AttendDecodeArgs>()),
           bad_segments<AttendDecodeArgs>()));
  expect_named<SettleArgs>(
      "settle", {tensor({3, 4, kSlots}, 0), tensor({3, 4}, 4096), kShape, kSegments, cache()},
      join(join<SettleArgs>({{"logits",
                              [](auto& a) {
                                a.logits.shape = {3, 4, 16};
                              }},
                             {"logits are missing", [](auto& a) { a.logits.data = nullptr; }},
                             {"lse is missing", [](auto& a) { a.lse.data = nullptr; }},
                             {"scores", [](auto& a) { a.cache.score = nullptr; }},
                             {"victims", [](auto& a) { a.cache.victim = nullptr; }}},
                            bad_caches<SettleArgs>()),
           bad_segments<SettleArgs>()));
  expect_named<StoreDecodeArgs>("store_decode", {kSegments, cache(), cache()},
                                {{"victims", [](auto& a) { a.from.victim = nullptr; }},
                                 {"from", [](auto& a) { a.from.kv.data = nullptr; }},
                                 {"to", [](auto& a) { a.to.kv.data = nullptr; }},
                                 {"kv heads", [](auto& a) { a.to.kv_heads = 1; }},
                                 {"bf16", [](auto& a) { a.to.dtype = DType::bf16; }},
                                 {"slot 30 of 16", [](auto& a) { a.to.slots = 16; }}});
}

TEST_CASE("arguments of prompts are checked") {
  const PromptSegment prompt = prompt_segment();
  const std::span<const PromptSegment> segments(&prompt, 1);
  expect_named<SplitPromptArgs>(
      "split_prompt",
      {tensor({3, 64}, 0), kRotary, kShape, segments, DType::bf16, tensor({3, 4, 8}, 1024)},
      join<SplitPromptArgs>({{"qkv",
                              [](auto& a) {
                                a.qkv.shape = {3, 63};
                              }},
                             {"rotary", [](auto& a) { a.rotary.table.dtype = DType::bf16; }},
                             {"q8_0", [](auto& a) { a.dtype = DType::q8_0; }},
                             {"tokens [0, 3)",
                              [](auto& a) {
                                a.qkv.shape = {2, 64}, a.q.shape = {2, 4, 8};
                              }},
                             {"overlap", [](auto& a) { a.q.data = memory; }}},
                            bad_prompts<SplitPromptArgs>()));
  expect_named<AttendPromptArgs>(
      "attend_prompt",
      {tensor({3, 4, 8}, 0), kShape, segments, DType::f32, 1, tensor({3, 4, 8}, 1024),
       tensor({3, 4}, 2048)},
      join<AttendPromptArgs>(
          {{"q",
            [](auto& a) {
              a.q.shape = {3, 4, 7};
            }},
           {"out",
            [](auto& a) {
              a.out.shape = {2, 4, 8};
            }},
           {"lse", [](auto& a) { a.lse.data = nullptr; }},
           {"i32", [](auto& a) { a.dtype = DType::i32; }},
           {"scale", [](auto& a) { a.scale = std::numeric_limits<float>::infinity(); }},
           {"overlap", [](auto& a) { a.out.data = memory; }}},
          bad_prompts<AttendPromptArgs>()));
  static PromptSegment short_stride = prompt, no_last = prompt;
  short_stride.stats_stride = 19;
  no_last.last = nullptr;
  expect_named<SummarizePromptArgs>(
      "summarize_prompt",
      {tensor({3, 4, 8}, 0), tensor({3, 4}, 1024), kShape, segments, DType::f32, 1},
      join<SummarizePromptArgs>({{"lse",
                                  [](auto& a) {
                                    a.lse.shape = {3, 2};
                                  }},
                                 {"19 a head",
                                  [](auto& a) {
                                    a.segments = {&short_stride, 1};
                                  }},
                                 {"last",
                                  [](auto& a) {
                                    a.segments = {&no_last, 1};
                                  }}},
                                bad_prompts<SummarizePromptArgs>()));
  StorePromptArgs store{prompt, kShape, cache()};
  store.prompt.kv.data += 8192;
  expect_named<StorePromptArgs>(
      "store_prompt", store,
      {{"heads", [](auto& a) { a.shape.kv_heads = 3; }},
       {"0 tokens", [](auto& a) { a.prompt.length = 0; }},
       {"place 2", [](auto& a) { a.prompt.segment.place = 2; }},
       {"kv of the prompt", [](auto& a) { a.prompt.kv.data = nullptr; }},
       {"runs have 256 bytes", [](auto& a) { a.prompt.kv.run_bytes = 256; }},
       {"in its home", [](auto& a) { a.prompt.kv.data = memory; }},
       {"statistics", [](auto& a) { a.prompt.sum = nullptr; }},
       {"scores", [](auto& a) { a.to.score = nullptr; }}});
}
