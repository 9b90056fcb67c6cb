// Which panels of which matrix are at home on the device, on the host, in the file.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "offload/shares.hpp"
#include "runtime/model/spec.hpp"
#include "runtime/model/weight_plan.hpp"

namespace hydrant {

struct MatrixSize {
  int stage = 0;
  int64_t panels = 0;
  size_t panel_bytes = 0;
  bool only_looked_up = false;  // a table that multiplies nothing
};

// A matrix's panels, in this order.
struct PanelHomes {
  int64_t device = 0, host = 0, disk = 0;

  friend bool operator==(const PanelHomes&, const PanelHomes&) = default;
};

// Shares are of the bytes of a model's matrices. Vectors are small, are not counted and are on the
// device whatever the shares.
//
// A stage's matrices, in the order given, are one row of panels; two borders cut it into what is on
// the device, on the host and in the file. So at most one matrix of a stage is cut between device
// and elsewhere, every stage moves the same share of its bytes, and a share holds within one panel,
// in each stage and over the model (what rounding leaves over goes to the next stage).
//
// Tables that are only looked up in never move, so they take their bytes from the file's share
// first, then from the host's: that leaves the better homes to what multiplies.
//
// Throws as check_shares.
std::vector<PanelHomes> place_weights(std::span<const MatrixSize> matrices, const Shares& shares);

// As place_weights takes them, one for each of the plan's matrices. A tied table belongs to the
// head, which multiplies by it.
std::vector<MatrixSize> matrix_sizes(const WeightPlan& plan, const ModelSpec& spec);

}  // namespace hydrant
