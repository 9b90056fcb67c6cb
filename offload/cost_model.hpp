// How long a run takes on a machine whose rates are known. Seconds, bytes, rows.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "offload/cache_layout.hpp"
#include "offload/hidden_offload.hpp"
#include "offload/machine_rates.hpp"
#include "offload/weight_layout.hpp"
#include "offload/weight_offload.hpp"

namespace hydrant {

// A run as the model of costs sees it.
struct CostSetup {
  const ModelSpec* spec = nullptr;
  const WeightLayout* weights = nullptr;  // also of weights that stay
  WeightOffload weight_options;           // slots, lanes, link, overlap
  const CacheLayout* caches = nullptr;    // null: no cache moves
  CacheOffload cache_options;
  HiddenOffload hidden;
  DType kv_dtype = DType::bf16;
  int32_t rows_per_group = 1, groups = 1;
  int32_t prefill_chunk = 128, prefill_tokens = 8192;  // as BatchShape
  int threads = 1;
  bool host_is_device = true;  // lanes take cores and memory from those who compute
};

// Rows that are all alike.
struct Workload {
  int64_t rows = 1;
  int32_t prompt = 1, output = 1;      // tokens of each
  std::vector<policy::RowPlan> plans;  // [layer]
};

// Of one step, or the sum over several; seconds.
//
// compute is what the lane that computes is busy with:
//   products    n * k * weight(rows) + call(rows * k) for each matrix, group and piece of a prompt
//   attention   components of the slots that a token reads, query heads together; pairs of a prompt
//   scoring     what scored rows take beside that: masses, choice of who leaves, column sums
//   operations  what a block takes beside those: norms, rotation, gates, sums, fork and join, by
//               the elements of its activations; the head's maximum
// The other lanes:
//   link        bytes to the device / the link's pace, or what a copy reaches where that is less:
//               weights, cached rows that pass through, hidden states that wait on the host
//   link_down   what cached rows bring back, and hidden states
//   link_both   where there is a bus: both, at the rates that the ways have together while both
//               are busy, and then the rest of one of them alone
//   disk        weights from the files: requests * request + bytes * byte, with as many under way
//               as lanes read and do not pack
//   cache_disk  cached rows from and to disk, in the same way: a read for each row, a write for
//               each block of a tail that goes; both also wait for each other
//   look_up     rows of tables in the files: one small read behind another, each behind those of
//               weights that are under way as long as there is room for more; what computes waits
// Two bounds, where lanes share cores and memory with who computes:
//   cores       (compute * threads + CPU time of copies and packing) / cores
//   bus         bytes that all of them read and write / the rate that memory is read with
// seconds: with overlap the longest of these, or what the stages take one behind another when each
// waits for its slot of the ring to be filled, from buffers that are read ahead (`waiting` is what
// compute stands still for); without overlap the sum of the lanes.
struct LaneSeconds {
  double products = 0, attention = 0, scoring = 0, operations = 0;
  double link = 0, link_down = 0, link_both = 0, disk = 0, cache_disk = 0, look_up = 0;
  double cores = 0, bus = 0;
  double waiting = 0, seconds = 0;

  double compute() const { return products + attention + scoring + operations; }
  const char* bound() const;  // the name of what decides `seconds`
  LaneSeconds& operator+=(const LaneSeconds& other);
  LaneSeconds times(double factor) const;
};

struct Prediction {
  LaneSeconds prefill, decode;  // sums over the run; a step with both is divided by its compute
  double steps = 0;
  double generated = 0;  // tokens

  double seconds() const { return prefill.seconds + decode.seconds; }
  double tokens_per_second() const { return generated / seconds(); }
};

class CostModel {
 public:
  // Both outlive it. Throws bad_config where the rates lack a format of the run.
  CostModel(const MachineRates& rates, const CostSetup& setup);

  // Numbers that a block's small operations go through for one token.
  static int64_t block_elements(const ModelSpec& spec);

  // Rows [first, first + count) of all places decode the token at `position`.
  struct Decoding {
    int64_t first = 0, count = 0;
    int32_t position = 0;
  };
  struct Load {
    std::vector<Decoding> decode;
    Decoding prompts{};  // `position`: their length; they are computed whole
  };
  struct StepCost {
    LaneSeconds lanes;
    double prompt_share = 0;  // of compute
  };
  StepCost step(const Load& load, const Workload& work) const;

  // As the loop runs it: rows are admitted in order, as many prompts a step as fit prefill_tokens,
  // into places that are free; all run to their end.
  Prediction run(const Workload& work) const;

 private:
  struct Stage {  // what moves for it in a step
    double link = 0, disk = 0;
    int64_t reads = 0;  // in so many parts
    bool moves = false;
  };
  struct Compute {
    LaneSeconds lanes;
    std::vector<double> stages;  // seconds
    double bytes = 0;            // of weights and cache that are read
  };
  // Of all stages of a pass with so many rows.
  struct Pass {
    std::vector<double> products, operations;  // [stage]; the head's are of one row in a prompt
  };
  // How many of [first, first + count) lie in [begin, end).
  static int64_t overlap(int64_t first, int64_t count, int64_t begin, int64_t end);
  const Pass& pass(int64_t rows) const;
  // Of bytes in copies of `piece`, which go alone.
  using Way = Curve BusRates::*;
  double link_seconds(Way way, double bytes, double piece) const;
  double both_seconds(const LaneSeconds& lanes, double piece) const;
  void add_decode(Compute& sum, const Load& load, const Workload& work) const;
  double add_prompts(Compute& sum, const Load& load, const Workload& work) const;
  CacheMoves moves(const Load& load, const Workload& work) const;
  double cache_disk(const Load& load, const Workload& work) const;
  double look_up(const Load& load) const;
  double hidden_bytes(const Load& load) const;
  double pipeline(const std::vector<double>& compute) const;

  const MachineRates& rates_;
  CostSetup setup_;
  std::vector<Stage> stages_;
  double weight_link_ = 0, weight_disk_ = 0, weight_cpu_ = 0, weight_bytes_moved_ = 0;
  double weight_reads_ = 0;  // requests
  double moving_stages_ = 0;
  double panel_bytes_ = 0;  // of all products
  mutable std::map<int64_t, Pass> passes_;
};

}  // namespace hydrant
