#include "runtime/backends/cpu/kernels/linear_tiles.hpp"

#include <algorithm>

#include "runtime/base/aligned.hpp"

namespace hydrant::cpu {
namespace {

// Index of the shape to cut next from `left` rows: the smallest that takes them all, else the
// largest, but two equal tiles where they are enough (a small last tile is slow).
int pick_shape(const LinearShapes& shapes, int64_t left) {
  int last = 0;
  while (last < 5 && shapes.rows[last + 1] != 0) last++;
  for (int i = 0; i <= last; i++)
    if (left <= shapes.rows[i]) return i;
  return last > 0 && left <= 2 * shapes.rows[last - 1] ? last - 1 : last;
}

size_t tile_bytes(const LinearPath& path, Activations kind, int64_t k, int rows) {
  const size_t row = path.row_bytes_per_block[size_t(kind)] * size_t(ceil_div(k, kBlock));
  return align_up(row * size_t(rows), size_t{64});
}

}  // namespace

size_t cut_tiles(const LinearPath& path, Activations kind, int64_t t, int64_t k, int ranges,
                 std::vector<LinearTile>* tiles) {
  const LinearShapes& shapes = path.shapes[size_t(kind)];
  size_t offset = 0;
  int64_t first = 0;
  for (int range = 1; range <= ranges; range++)
    for (const int64_t end = first_row(t, range, ranges); first < end;) {
      const int shape = pick_shape(shapes, end - first);
      const int rows = int(std::min<int64_t>(shapes.rows[shape], end - first));
      if (tiles) tiles->push_back({first, rows, shape, offset});
      offset += tile_bytes(path, kind, k, shapes.rows[shape]);
      first += rows;
    }
  return offset;
}

}  // namespace hydrant::cpu
