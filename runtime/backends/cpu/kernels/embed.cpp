#include "runtime/backends/cpu/kernels/embed.hpp"

#include <vector>

#include "runtime/backends/cpu/kernels/pack.hpp"
#include "runtime/base/error.hpp"

namespace hydrant::cpu {
namespace {

void embed_row(const EmbedArgs& args, int64_t i) {
  const Weight& table = args.table;
  const int64_t row = int64_t{args.indices.as<int32_t>()[i]} + args.offset;
  if (args.partial && (row < 0 || row >= table.n)) return;
  ensure(row >= 0 && row < table.n, "embedding row {} of a table of {}", row, table.n);
  const auto* panel =
      static_cast<const std::byte*>(table.panels) + size_t(row / kPanelRows) * table.panel_bytes;
  float* out = args.out.as<float>() + i * table.k;
  const int lane = int(row % kPanelRows);
  if (!args.accumulate) return unpack_row(table.format, table.k, panel, lane, out);
  thread_local std::vector<float> values;
  values.resize(size_t(table.k));
  unpack_row(table.format, table.k, panel, lane, values.data());
  for (size_t j = 0; j < values.size(); j++) out[j] += values[j];
}

}  // namespace

void embed(ThreadPool& pool, const EmbedArgs& args) {
  const int64_t tokens = args.indices.shape[0];
  constexpr int64_t kWorthWaking = 1 << 14;  // elements; fewer take no longer than the fork
  if (tokens * args.table.k < kWorthWaking) {
    for (int64_t i = 0; i < tokens; i++) embed_row(args, i);
    return;
  }
  pool.split(tokens, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; i++) embed_row(args, i);
  });
}

}  // namespace hydrant::cpu
