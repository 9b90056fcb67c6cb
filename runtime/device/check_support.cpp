#include "runtime/device/check_support.hpp"

#include "runtime/base/aligned.hpp"

namespace hydrant {
namespace {

std::string describe(DType dtype, const Shape& shape) {
  std::string text = fmt::format("{} [", name(dtype));
  for (int i = 0; i < shape.rank(); i++) text += fmt::format("{}{}", i ? ", " : "", shape[i]);
  return text + "]";
}

// Faster than ==, which compares all four extents through memcmp: checks run before each operation.
bool same(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank()) return false;
  for (int i = 0; i < a.rank(); i++)
    if (a[i] != b[i]) return false;
  return true;
}

bool overlap(const ConstTensor& a, const ConstTensor& b) {
  const auto begin = [](const ConstTensor& t) { return reinterpret_cast<uintptr_t>(t.data); };
  const auto end = [&](const ConstTensor& t) {
    return begin(t) + uintptr_t(row_bytes(t.dtype, t.shape.count()));
  };
  return a && b && begin(a) < end(b) && begin(b) < end(a);
}

}  // namespace

void Checker::complain(const std::string& what) const {
  fail(Fault::internal, "{}: {}", op_, what);
}

void Checker::rank(std::string_view argument, const ConstTensor& t, DType dtype, int rank) const {
  if (t.dtype != dtype || t.shape.rank() != rank)
    complain(fmt::format("{} is {}, expected {} of rank {}", argument, describe(t.dtype, t.shape),
                         name(dtype), rank));
  holds(t || t.shape.count() == 0, "{} is missing", argument);
}

void Checker::tensor(std::string_view argument, const ConstTensor& t, DType dtype,
                     const Shape& expected) const {
  if (t.dtype != dtype || !same(t.shape, expected))
    complain(fmt::format("{} is {}, expected {}", argument, describe(t.dtype, t.shape),
                         describe(dtype, expected)));
  holds(t || t.shape.count() == 0, "{} is missing", argument);
}

void Checker::optional(std::string_view argument, const ConstTensor& t, DType dtype,
                       const Shape& expected) const {
  if (t) tensor(argument, t, dtype, expected);
}

void Checker::apart(std::string_view a, const ConstTensor& first, std::string_view b,
                    const ConstTensor& second) const {
  holds(!overlap(first, second), "{} and {} overlap", a, b);
}

void Checker::same_or_apart(std::string_view a, const ConstTensor& first, std::string_view b,
                            const ConstTensor& second) const {
  holds(first.data == second.data || !overlap(first, second), "{} and {} overlap in part", a, b);
}

void Checker::heads(const HeadShape& shape) const {
  holds(shape.heads > 0 && shape.kv_heads > 0 && shape.head_dim > 0 &&
            shape.heads % shape.kv_heads == 0,
        "shape has {} heads, {} kv heads, {} wide", shape.heads, shape.kv_heads, shape.head_dim);
}

void Checker::rotary(std::string_view argument, const Rotary& rotary, int32_t head_dim,
                     int64_t least_places) const {
  if (rotary.dims == 0) return;
  holds(rotary.dims > 0 && rotary.dims % 2 == 0 && rotary.dims <= head_dim,
        "{} rotates {} components of {}", argument, rotary.dims, head_dim);
  if (!rotary.table) return;
  tensor(argument, rotary.table, DType::f32, {rotary.table.shape[0], rotary.dims / 2, 2});
  holds(rotary.table.shape[0] >= least_places, "{} has {} places, expected at least {}", argument,
        rotary.table.shape[0], least_places);
}

void Checker::kv_dtype(DType dtype) const {
  holds(dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16,
        "dtype of the cache is {}", name(dtype));
}

void Checker::runs(std::string_view argument, const KvRuns& runs, int64_t slots,
                   int32_t kv_heads) const {
  holds(runs.data != nullptr, "{} has no memory", argument);
  const auto needed = size_t(ceil_div(slots, int64_t{kRunSlots})) * runs.run_bytes;
  holds(runs.run_bytes > 0 && (kv_heads == 1 || runs.head_bytes >= needed),
        "{} has {} bytes a head and {} a run, for {} slots", argument, runs.head_bytes,
        runs.run_bytes, slots);
}

void Checker::cache(std::string_view argument, const CacheView& view) const {
  holds(view.first >= 0 && view.places > 0 && view.kv_heads > 0 && view.head_dim > 0 &&
            view.slots > 0 && view.slots % kRunSlots == 0,
        "{} has {} places, {} kv heads, {} wide, {} slots", argument, view.places, view.kv_heads,
        view.head_dim, view.slots);
  kv_dtype(view.dtype);
  runs(argument, view.kv, view.slots, view.kv_heads);
  holds(view.position != nullptr && view.plans != nullptr, "{} has no {}", argument,
        view.plans ? "positions" : "plans");
}

void Checker::segment(const Segment& s, int32_t& next_token, int64_t tokens) const {
  holds(s.first >= 0 && s.count > 0, "a segment of {} tokens from position {}", s.count, s.first);
  holds(s.token >= next_token && int64_t{s.token} + s.count <= tokens,
        "a segment holds tokens [{}, {}), expected them in [{}, {})", s.token,
        int64_t{s.token} + s.count, next_token, tokens);
  next_token = s.token + s.count;
}

void Checker::decode_segments(std::span<const Segment> segments, int64_t tokens,
                              const CacheView& view) const {
  int32_t next_token = 0;
  for (const Segment& s : segments) {
    segment(s, next_token, tokens);
    holds(s.count == 1, "a segment has {} tokens, expected 1", s.count);
    holds(view.has(s.place), "a segment has place {}, expected {} to {}", s.place, view.first,
          view.first + view.places - 1);
    const int32_t landing = view.plans[s.place].slots.landing_of(s.first);
    holds(landing < view.slots, "position {} lands in slot {} of {}", s.first, landing, view.slots);
  }
}

void Checker::prompt_segments(std::span<const PromptSegment> segments, int64_t tokens,
                              const HeadShape& shape) const {
  int32_t next_token = 0;
  for (const PromptSegment& s : segments) {
    segment(s.segment, next_token, tokens);
    holds(int64_t{s.segment.first} + s.segment.count <= s.length,
          "a segment holds positions [{}, {}) of a prompt of {}", s.segment.first,
          int64_t{s.segment.first} + s.segment.count, s.length);
    runs("kv of a segment", s.kv, s.length, shape.kv_heads);
    if (s.raw.data) runs("raw of a segment", s.raw, s.length, shape.kv_heads);
  }
}

}  // namespace hydrant
