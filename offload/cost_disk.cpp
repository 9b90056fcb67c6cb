// What the model of costs says about disks.
#include <algorithm>
#include <array>

#include "offload/cost_model.hpp"
#include "offload/disk_panels.hpp"
#include "runtime/base/aligned.hpp"

namespace hydrant {

// A (layer, group) after another: its rows are read, a request each; then what leaves the tails is
// written.
double CostModel::cache_disk(const Load& load, const Workload& work) const {
  if (!setup_.caches) return 0;
  const double most = setup_.cache_options.disk_requests;
  const auto seconds = [&](const DiskRates& disk, double requests, double bytes) {
    return disk.seconds(requests, bytes, std::clamp(requests, 1.0, most));
  };
  double sum = 0;
  for (int32_t g = 0; g < setup_.groups; g++) {
    const int64_t end = int64_t{g + 1} * setup_.rows_per_group;
    const RowHomes& homes = setup_.caches->homes(g);
    const int64_t begin = end - homes.disk;
    const auto prompts = overlap(load.prompts.first, load.prompts.count, begin, end);
    for (size_t layer = 0; layer < work.plans.size() && homes.disk > 0; layer++) {
      const policy::SlotLayout& slots = work.plans[layer].slots;
      const auto l = int32_t(layer);
      double rows = 0, written = 0;
      for (const Decoding& d : load.decode) {
        const auto here = double(overlap(d.first, d.count, begin, end));
        rows += here;
        written += here * setup_.caches->mean_written(slots, d.position);
      }
      sum += seconds(rates_.disk_read, rows, rows * double(setup_.caches->block_bytes(l)));
      sum += seconds(rates_.disk_write, written / double(CacheLayout::kUnit), written);
      if (prompts == 0) continue;
      const CacheMoves one =
          setup_.caches->prompt_moves(l, g, homes.first_on_disk(), load.prompts.position, slots);
      sum += seconds(rates_.disk_write, double(prompts) * setup_.spec->block.kv_heads,
                     double(prompts) * double(one.written));
    }
  }
  return sum;
}

double CostModel::look_up(const Load& load) const {
  const auto tokens = [&] {
    int64_t sum = load.prompts.count * load.prompts.position;
    for (const Decoding& d : load.decode) sum += d.count;
    return double(sum);
  }();
  const WeightOffload& o = setup_.weight_options;
  double sum = 0;
  for (const MatrixPlace& table : setup_.weights->tables) {
    const Weight& w = table.plan->weight;
    const double here = double(table.homes.disk) / double(ceil_div(w.n, kPanelRows)),
                 bytes = double(row_bytes(w.format, w.k)) + double(File::kBlock);
    sum += tokens * here * rates_.file_read.seconds(1, bytes, 1);
    if (!o.overlap || weight_reads_ == 0) continue;
    // A read of weights is ahead of it on each of their lanes, until ring and buffers are full.
    const double read = weight_disk_ / weight_reads_, stage = weight_disk_ / moving_stages_;
    sum += std::min(tokens * here * o.disk_lanes * read,
                    o.slots * stage + double(DiskPanels::buffers(o.disk_lanes)) * read);
  }
  return sum;
}

}  // namespace hydrant
