// Random weights on a device.
#pragma once
#include <algorithm>
#include <vector>

#include "runtime/base/aligned.hpp"
#include "test/ops/linear_case.hpp"
#include "test/support/backend_fixture.hpp"

namespace hydrant::test {

inline Weight upload(Bench& bench, const FileWeights& file, Activations activations) {
  const Ops& ops = bench.ops();
  const size_t panel = ops.panel_bytes(file.format, file.k);
  const auto row = size_t(row_bytes(file.format, file.k));
  std::vector<std::byte> panels(size_t(ceil_div(file.n, kPanelRows)) * panel, std::byte{0xff});
  for (int64_t p = 0; p * kPanelRows < file.n; p++) {
    std::vector<const std::byte*> rows;
    for (int64_t r = p * kPanelRows; r < std::min(file.n, (p + 1) * kPanelRows); r++)
      rows.push_back(file.bytes.data() + size_t(r) * row);
    ops.pack_panel(file.format, file.k, rows, panels.data() + size_t(p) * panel);
  }
  return {bench.put_bytes(panels.data(), panels.size()),
          file.format,
          activations,
          file.n,
          file.k,
          panel};
}

}  // namespace hydrant::test
