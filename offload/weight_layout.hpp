// Where each byte of offloaded weights lies and moves: worked out once, before anything is read.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "offload/placement.hpp"
#include "runtime/model/panel_reader.hpp"
#include "runtime/model/weight_plan.hpp"

namespace hydrant {

// One matrix of a stage. Its panels on the device are one run of memory, those that are streamed
// another: [host | disk] in the stage's slot.
struct MatrixPlace {
  const MatrixPlan* plan = nullptr;
  Matrix role{};
  PanelHomes homes;
  size_t device_at = 0;  // in the device home
  size_t host_at = 0;    // in the host home
  size_t slot_at = 0;    // in a slot

  int64_t streamed() const { return homes.host + homes.disk; }
  // Panels [first, first + count), which lie at `panels`, as a matrix.
  Weight weight(int64_t first, int64_t count, const std::byte* panels) const;
};

struct DiskRun {
  PanelRun run;
  size_t slot_at = 0;
};

// Runs of a stage that are read at once: neighbours in the file, about a MiB.
struct DiskRead {
  std::vector<DiskRun> runs;
  size_t bytes = 0;        // packed, without gaps
  int64_t file_bytes = 0;  // of the rows, as they are stored
  int64_t requests = 1;    // more: its rows are not side by side
};

struct StageLayout {
  std::vector<MatrixPlace> matrices;
  // What begins the slot is one run of the host home: it comes by one copy.
  size_t host_at = 0, host_bytes = 0;
  std::vector<DiskRead> disk;  // what follows it
  size_t disk_bytes = 0;       // packed, without gaps
  size_t slot_bytes = 0;
  // Where it passes: the slot of its own, or, if it is small beside the stage before it, that one's
  // slot behind that: a slot of its own would keep the next large stage waiting.
  int slot_of = 0;
  size_t slot_at = 0;
};

// The host home, cut in two: what kernels look up in place, at the front, and what is only copied.
struct HostHome {
  std::byte *looked_up = nullptr, *copied = nullptr;
  size_t border = 0;

  std::byte* at(size_t offset) const {
    return offset < border ? looked_up + offset : copied + (offset - border);
  }
};

// The order of a stage's matrices is that of their panels in the slot, so the host home of a stage
// is the image of its slot's beginning, and panels from host and file meet without a gap.
struct WeightLayout {
  // Reads of a large model are tens of thousands; who only asks for room on the device or in the
  // home on the host leaves them out.
  enum class Reads { listed, left_out };
  WeightLayout(const WeightPlan& plan, const ModelSpec& spec, const Shares& shares,
               Reads reads = Reads::listed);

  std::vector<StageLayout> stages;
  // Tables that stage 0 looks up in, where they lie. A tied one is the head's: the same places.
  std::vector<MatrixPlace> tables;
  std::vector<size_t> vector_at;            // of the plan's vectors, in the device home
  size_t device_bytes = 0, host_bytes = 0;  // of the homes
  size_t looked_up_bytes = 0;               // of the host home, at its front
  size_t slot_bytes = 0;                    // of the largest stage and those that pass with it
  size_t largest_read = 0;                  // packed

  const MatrixPlace* table(Matrix role) const;  // null: the model has none
  // What is loaded once, when the homes begin there.
  std::vector<PanelLoad> loads(std::byte* device, const HostHome& host) const;
};

}  // namespace hydrant
