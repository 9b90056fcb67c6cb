#include "offload/placement.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "runtime/base/aligned.hpp"
#include "runtime/base/error.hpp"

namespace hydrant {
namespace {

double bytes_of(const MatrixSize& m) { return double(m.panels) * double(m.panel_bytes); }

// As many of a matrix's panels as come nearest to `bytes`.
int64_t nearest(const MatrixSize& m, double bytes) {
  const double panels = std::round(bytes / double(m.panel_bytes));
  return int64_t(std::clamp(panels, 0.0, double(m.panels)));
}

// Bytes that are still to be placed.
struct Budget {
  double device, host, disk;
};

PanelHomes place_table(const MatrixSize& m, Budget& left, bool device) {
  PanelHomes homes;
  const auto take = [&](double& from, int64_t most) {
    const int64_t panels = std::min(most, nearest(m, from));
    from = std::max(0.0, from - double(panels) * double(m.panel_bytes));
    return panels;
  };
  homes.disk = take(left.disk, m.panels);
  homes.host = take(left.host, m.panels - homes.disk);
  // What two roundings leave over goes to a home that has a share.
  if (!device)
    (left.disk > left.host ? homes.disk : homes.host) += m.panels - homes.disk - homes.host;
  homes.device = m.panels - homes.disk - homes.host;
  left.device -= double(homes.device) * double(m.panel_bytes);
  return homes;
}

// A border that follows a share of all bytes so far.
class Border {
 public:
  explicit Border(double share) : share_(std::clamp(share, 0.0, 1.0)) {}

  // The stage's panels before the border, matrix by matrix.
  std::vector<int64_t> in(std::span<const MatrixSize* const> stage) const {
    double left = owed_;
    for (const MatrixSize* m : stage) left += share_ * bytes_of(*m);
    std::vector<int64_t> before;
    for (const MatrixSize* m : stage) {
      before.push_back(nearest(*m, left));
      left = before.back() == m->panels ? left - bytes_of(*m) : 0;
    }
    return before;
  }
  void settle(std::span<const MatrixSize* const> stage, std::span<const int64_t> before) {
    for (size_t i = 0; i < stage.size(); i++)
      owed_ += share_ * bytes_of(*stage[i]) - double(before[i]) * double(stage[i]->panel_bytes);
  }

 private:
  double share_, owed_ = 0;
};

}  // namespace

std::vector<PanelHomes> place_weights(std::span<const MatrixSize> matrices, const Shares& shares) {
  check_shares(shares, "placement.weights");
  double all = 0, multiplying = 0;
  for (const MatrixSize& m : matrices) {
    all += bytes_of(m);
    if (!m.only_looked_up) multiplying += bytes_of(m);
  }
  Budget left{all * shares.device / 100, all * shares.host / 100, all * shares.disk / 100};
  std::vector<PanelHomes> homes(matrices.size());
  std::map<int, std::vector<size_t>> stages;
  for (size_t i = 0; i < matrices.size(); i++)
    if (matrices[i].only_looked_up)
      homes[i] = place_table(matrices[i], left, shares.device > 0);
    else
      stages[matrices[i].stage].push_back(i);
  if (multiplying == 0) return homes;

  // All of it when nothing is to be elsewhere, whatever the sums above have been rounded to.
  Border device(shares.device == 100 ? 1 : left.device / multiplying);
  Border memory(shares.disk == 0 ? 1 : (left.device + left.host) / multiplying);
  for (const auto& [stage, indices] : stages) {
    std::vector<const MatrixSize*> sizes;
    for (const size_t i : indices) sizes.push_back(&matrices[i]);
    const std::vector<int64_t> on_device = device.in(sizes);
    std::vector<int64_t> in_memory = memory.in(sizes);
    for (size_t i = 0; i < indices.size(); i++) {
      in_memory[i] = std::max(in_memory[i], on_device[i]);  // borders may lie within one panel
      homes[indices[i]] = {on_device[i], in_memory[i] - on_device[i],
                           sizes[i]->panels - in_memory[i]};
    }
    device.settle(sizes, on_device);
    memory.settle(sizes, in_memory);
  }
  return homes;
}

std::vector<MatrixSize> matrix_sizes(const WeightPlan& plan, const ModelSpec& spec) {
  std::vector<MatrixSize> sizes;
  for (const MatrixPlan& m : plan.matrices) {
    const bool tokens = m.source.role == Matrix::tokens;
    const bool tied = tokens && spec.tied_head;
    sizes.push_back({tied ? spec.stages() - 1 : m.source.stage, ceil_div(m.weight.n, kPanelRows),
                     m.weight.panel_bytes, m.source.role == Matrix::places || (tokens && !tied)});
  }
  return sizes;
}

}  // namespace hydrant
