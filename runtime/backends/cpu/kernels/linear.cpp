#include "runtime/backends/cpu/kernels/linear.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <new>
#include <span>

#include "runtime/backends/cpu/kernels/intrinsics.hpp"
#include "runtime/backends/cpu/kernels/linear_paths.hpp"
#include "runtime/backends/cpu/kernels/linear_tiles.hpp"
#include "runtime/base/error.hpp"

namespace hydrant::cpu {
namespace {

constexpr size_t kKinds = 3;  // of Activations: f16 is none of ours
constexpr std::array kEveryKind{Activations::f32, Activations::bf16, Activations::int8};

const LinearPath& linear_path(Isa isa) {
  switch (isa) {
    case Isa::generic:
      return generic::linear;
    case Isa::avx2:
      return avx2::linear;
    case Isa::avx512:
      return avx512::linear;
    case Isa::avx512_bf16:
      return avx512_bf16::linear;
    case Isa::amx:
      return amx::linear();
  }
  fail(Fault::internal, "no such instruction path");
}

// Members that have this many rows each take rows of their own and all panels: they pack what they
// multiply, wait for nobody, and find x and leave y in their own cache. With fewer rows the panels
// are split, so that each is read once; that matters less where all of them stay in a shared cache.
constexpr int64_t kRowsOfTheirOwn = 64, kFewRowsOfTheirOwn = 8;
constexpr size_t kCached = size_t{4} << 20;

bool may_split_rows(int threads, int64_t t) {
  return threads > 1 && t >= kFewRowsOfTheirOwn * threads;
}
bool splits_rows(int threads, int64_t t, size_t weight_bytes) {
  return may_split_rows(threads, t) && (t >= kRowsOfTheirOwn * threads || weight_bytes <= kCached);
}

// Up to this many elements of x every thread packs all of them for itself: that costs less than
// the fork and join between packing and multiplying.
constexpr int64_t kPrivate = 6144;

bool packs_privately(int threads, int64_t t, int64_t k) {
  return threads == 1 || t * k <= kPrivate;
}

struct Part {
  const Weight* weight;
  MultiplyTile kernels[6];
  int64_t first_panel, panels;  // among the panels of all parts
  int64_t column;
};

// One call: the parts side by side, the packed x of each kind, and who does which panels.
class Product {
 public:
  Product(ThreadPool& pool, const LinearPath& path, const LinearArgs& args, LinearScratch& scratch);
  void run();

 private:
  void pack(size_t kind, const LinearTile& tile, int64_t begin, int64_t end, std::byte* to) const;
  // Of the rows [first, last), which begin and end with a tile.
  struct Rows {
    int64_t first, last;
  };
  std::span<const LinearTile> tiles_of(size_t kind, const Rows& rows) const;
  void pack_all(const Rows& rows, std::byte* to) const;
  void pack_together(std::byte* to);
  void prefetch_first(int member) const;
  void multiply(const std::byte* x, const Rows& rows, int64_t begin, int64_t end) const;
  void multiply_panels(const std::byte* x, const Part& part, const Rows& rows, int64_t begin,
                       int64_t end) const;
  int64_t border(int member) const;
  using AllProgress = std::span<LinearScratch::Progress>;
  void multiply_share(const std::byte* x, int member, AllProgress progress) const;
  void multiply_rows(std::byte* x, int member, AllProgress progress) const;

  ThreadPool& pool_;
  const LinearPath& path_;
  const LinearArgs& args_;
  LinearScratch& scratch_;
  int64_t t_, k_;
  std::array<Part, std::tuple_size_v<WeightParts>> parts_{};
  size_t part_count_ = 0;
  int64_t panels_ = 0, columns_ = 0;
  bool used_[kKinds] = {};
  bool own_rows_ = false;
  size_t kind_offset_[kKinds] = {};
  size_t x_bytes_ = 0;  // of one packed copy of x
};

Product::Product(ThreadPool& pool, const LinearPath& path, const LinearArgs& args,
                 LinearScratch& scratch)
    : pool_(pool),
      path_(path),
      args_(args),
      scratch_(scratch),
      t_(args.in.shape[0]),
      k_(args.in.shape[1]) {
  size_t weight_bytes = 0;
  for (const Weight& w : args.parts) {
    if (!w) break;
    Part& part = parts_[part_count_++];
    part = {&w, {}, panels_, ceil_div(w.n, kPanelRows), columns_};
    const LinearShapes& shapes = path.shapes[size_t(w.activations)];
    for (int s = 0; s < 6 && shapes.rows[s] != 0; s++) {
      part.kernels[s] = path.kernel(w.format, w.activations, s);
      ensure(part.kernels[s] != nullptr, "linear: {} weights with activations {}", name(w.format),
             int(w.activations));
    }
    panels_ += part.panels;
    weight_bytes += size_t(part.panels) * w.panel_bytes;
    columns_ += w.n;
    used_[size_t(w.activations)] = true;
  }
  own_rows_ = splits_rows(pool.size(), t_, weight_bytes);
  for (const Activations kind : kEveryKind) {
    if (!used_[size_t(kind)]) continue;
    auto& tiles = scratch.tiles[size_t(kind)];
    tiles.clear();
    kind_offset_[size_t(kind)] = x_bytes_;
    x_bytes_ += cut_tiles(path, kind, t_, k_, own_rows_ ? pool.size() : 1, &tiles);
  }
}

// Elements [begin, end) of k of one tile; begin is a multiple of 32.
void Product::pack(size_t kind, const LinearTile& tile, int64_t begin, int64_t end,
                   std::byte* to) const {
  const int shape = path_.shapes[kind].rows[tile.shape];
  const size_t skip = path_.row_bytes_per_block[kind] * size_t(begin / kBlock) * size_t(shape);
  path_.pack[kind](args_.in.as<float>() + tile.first * k_ + begin, k_, end - begin, tile.rows,
                   shape, to + kind_offset_[kind] + tile.offset + skip);
}

std::span<const LinearTile> Product::tiles_of(size_t kind, const Rows& rows) const {
  const auto& tiles = scratch_.tiles[kind];
  const auto at = [&](int64_t row) {
    return std::partition_point(tiles.begin(), tiles.end(),
                                [row](const LinearTile& tile) { return tile.first < row; });
  };
  return {at(rows.first), at(rows.last)};
}

void Product::pack_all(const Rows& rows, std::byte* to) const {
  for (size_t kind = 0; kind < kKinds; kind++)
    if (used_[kind])
      for (const LinearTile& tile : tiles_of(kind, rows)) pack(kind, tile, 0, k_, to);
}

// Few tiles are cut along k, so that every member has some pieces.
void Product::pack_together(std::byte* to) {
  for (size_t kind = 0; kind < kKinds; kind++) {
    if (!used_[kind]) continue;
    const auto& tiles = scratch_.tiles[kind];
    const auto count = int64_t(tiles.size());
    const int64_t wanted = ceil_div<int64_t>(4 * pool_.size(), count);
    const int64_t piece = align_up(ceil_div(k_, wanted), kBlock), pieces = ceil_div(k_, piece);
    pool_.each(count * pieces, [&](int64_t i, int) {
      const int64_t begin = i % pieces * piece;
      pack(kind, tiles[size_t(i / pieces)], begin, std::min(begin + piece, k_), to);
    });
  }
}

// The first panel of a member's part. Cost of a panel: its bytes, or for many rows its products;
// three bytes are read in about the time in which one row meets one k.
int64_t Product::border(int member) const {
  const auto cost = [&](const Part& part) {
    return double(part.weight->panel_bytes) + 3.0 * double(t_) * double(k_);
  };
  double all = 0;
  for (size_t p = 0; p < part_count_; p++) all += cost(parts_[p]) * double(parts_[p].panels);
  double left = all * member / pool_.size();
  for (size_t p = 0; p < part_count_; p++) {
    const Part& part = parts_[p];
    const double here = cost(part) * double(part.panels);
    if (left < here) return part.first_panel + int64_t(left / cost(part) + 0.5);
    left -= here;
  }
  return panels_;
}

// Memory answers while x is being packed.
void Product::prefetch_first(int member) const {
  const int64_t panel = border(member);
  for (size_t p = 0; p < part_count_; p++) {
    const Part& part = parts_[p];
    if (panel < part.first_panel || panel >= part.first_panel + part.panels) continue;
    const size_t at = size_t(panel - part.first_panel) * part.weight->panel_bytes;
    const size_t bytes = std::min<size_t>(part.weight->panel_bytes, 2048);
    for (size_t i = 0; i < bytes; i += 64)
      _mm_prefetch(static_cast<const char*>(part.weight->panels) + at + i, _MM_HINT_T0);
  }
}

// Panels outside, tiles inside: a group of panels stays in the L2 cache while x streams past it.
constexpr int64_t kGroupBytes = 320 << 10;

void Product::multiply_panels(const std::byte* x, const Part& part, const Rows& rows, int64_t begin,
                              int64_t end) const {
  const Weight& w = *part.weight;
  const auto kind = size_t(w.activations);
  const std::span<const LinearTile> tiles = tiles_of(kind, rows);
  const int64_t group =
      tiles.size() == 1
          ? kMostTilePanels
          : std::clamp<int64_t>(kGroupBytes / int64_t(w.panel_bytes), 4, kMostTilePanels);
  const LinearEnd last{
      args_.bias.as<float>() ? args_.bias.as<float>() + part.column : nullptr,
      args_.residual.as<float>() ? args_.residual.as<float>() + part.column : nullptr,
      args_.out.as<float>() + part.column, columns_, args_.after};
  alignas(64) float sums[kMostTilePanels * kMostTileRows * kPanelRows];
  for (int64_t panel = begin; panel < end; panel += group) {
    const int count = int(std::min(group, end - panel));
    const auto* panels = static_cast<const std::byte*>(w.panels) + size_t(panel) * w.panel_bytes;
    for (const LinearTile& tile : tiles) {
      part.kernels[tile.shape](x + kind_offset_[kind] + tile.offset, panels, w.panel_bytes, count,
                               k_, sums);
      path_.finish(last, sums, path_.shapes[kind].rows[tile.shape], count, tile.first, tile.rows,
                   panel * kPanelRows, w.n);
    }
  }
}

void Product::multiply(const std::byte* x, const Rows& rows, int64_t begin, int64_t end) const {
  for (size_t p = 0; p < part_count_; p++) {
    const Part& part = parts_[p];
    multiply_panels(x, part, rows, std::max<int64_t>(begin - part.first_panel, 0),
                    std::min(end - part.first_panel, part.panels));
  }
}

// The next panels of a member's part: many at first, few at the end.
int64_t take_panels(std::atomic<int64_t>& next, int64_t panels, int64_t& end) {
  int64_t begin = next.load(std::memory_order_relaxed);
  do end = std::min(begin + std::clamp<int64_t>((panels - begin) / 4, 4, kMostTilePanels), panels);
  while (!next.compare_exchange_weak(begin, end, std::memory_order_relaxed));
  return begin;
}

// A member's own panels, and then what others have not begun: a core that has other work to do as
// well holds nobody up for long.
void Product::multiply_share(const std::byte* x, int member, AllProgress progress) const {
  const int members = pool_.size();
  for (int i = 0; i < members; i++) {
    const int m = (member + i) % members;
    const int64_t first = border(m), panels = border(m + 1) - first;
    for (int64_t begin, end;
         (begin = take_panels(progress[size_t(m)].next_panel, panels, end)) < panels;)
      multiply(x, {0, t_}, first + begin, first + end);
  }
}

// The same with rows of their own.
void Product::multiply_rows(std::byte* x, int member, AllProgress progress) const {
  const int members = pool_.size();
  const auto rows_of = [&](int m) {
    return Rows{first_row(t_, m, members), first_row(t_, m + 1, members)};
  };
  const Rows own = rows_of(member);
  pack_all(own, x);
  // few rows of another's are not worth the way of x and y between the caches
  if (t_ < kRowsOfTheirOwn * members) return multiply(x, own, 0, panels_);
  progress[size_t(member)].packed.store(true, std::memory_order_release);
  for (int i = 0; i < members; i++) {
    const int m = (member + i) % members;
    auto& [packed, next] = progress[size_t(m)];
    if (!packed.load(std::memory_order_acquire)) continue;
    for (int64_t begin, end; (begin = take_panels(next, panels_, end)) < panels_;)
      multiply(x, rows_of(m), begin, end);
  }
}

void Product::run() {
  const Rows all{0, t_};
  const int members = pool_.size();
  const auto progress = scratch_.start(members);
  if (packs_privately(members, t_, k_)) {
    std::byte* x = scratch_.reserve(x_bytes_ * size_t(members));
    pool_.run([&](int member) {
      std::byte* own = x + x_bytes_ * size_t(member);
      prefetch_first(member);
      pack_all(all, own);
      multiply_share(own, member, progress);
    });
    return;
  }
  std::byte* x = scratch_.reserve(x_bytes_);
  if (own_rows_) {
    pool_.run([&](int member) { multiply_rows(x, member, progress); });
    return;
  }
  pack_together(x);
  pool_.run([&](int member) { multiply_share(x, member, progress); });
}

}  // namespace

void LinearScratch::Free::operator()(std::byte* p) const { std::free(p); }

std::byte* LinearScratch::reserve(size_t bytes) {
  if (bytes > bytes_) {
    data_.reset();
    bytes_ = 0;
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(64, align_up(bytes, size_t{64}))));
    if (!data_) fail(Fault::out_of_memory, "{} bytes for packed activations", bytes);
    bytes_ = bytes;
  }
  return data_.get();
}

std::span<LinearScratch::Progress> LinearScratch::start(int members) {
  if (members > members_) {
    progress_ = std::make_unique<Progress[]>(size_t(members));
    members_ = members;
  }
  for (int m = 0; m < members; m++) {
    progress_[size_t(m)].packed.store(false, std::memory_order_relaxed);
    progress_[size_t(m)].next_panel.store(0, std::memory_order_relaxed);
  }
  return {progress_.get(), size_t(members)};
}

size_t linear_scratch_bytes(Isa isa, int threads, int64_t t, int64_t k, Activations activations) {
  const auto copy = [&](int ranges) {
    return cut_tiles(linear_path(isa), activations, t, k, ranges, nullptr);
  };
  if (packs_privately(threads, t, k)) return copy(1) * size_t(threads);
  return may_split_rows(threads, t) ? std::max(copy(1), copy(threads)) : copy(1);
}

void linear(ThreadPool& pool, Isa isa, const LinearArgs& args, LinearScratch& scratch) {
  if (args.in.shape[0] == 0) return;
  Product(pool, linear_path(isa), args, scratch).run();
}

}  // namespace hydrant::cpu
