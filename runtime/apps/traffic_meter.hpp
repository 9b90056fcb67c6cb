// Bytes that a run moves, beside those that were to be expected.
#pragma once
#include <span>

#include "runtime/apps/loaded_model.hpp"

namespace hydrant {

struct Traffic {
  int64_t steps = 0;
  StepTraffic predicted, measured;  // of weights, in all steps
  uint64_t rows = 0;                // of tables, looked up in the file
  CacheMoves caches;                // measured
  CacheMoves hidden;                // measured, of hidden states: over the link alone

  Traffic& operator+=(const Traffic& other);
};

// Measures from its beginning. What is read ahead of the next step is taken out, so that a step's
// bytes are the step's.
class TrafficMeter {
 public:
  explicit TrafficMeter(LoadedModel& model);
  Traffic end(int64_t steps);  // waits for what is being read ahead
  void report(int64_t steps);  // the same, in a line for people; nothing where nothing moves

 private:
  struct Count {
    StepTraffic moved;
    uint64_t rows = 0;
    CacheMoves caches, hidden;
  };
  Count count();

  WeightPrefetcher* weights_;
  OffloadedCaches* caches_;
  OffloadedHidden* hidden_;
  double link_;
  Count begin_;
};

// What caches are to move when all rows begin together and none ends early. Where homes on the host
// lie, pinned or not, is as the model's last run had it.
struct PredictedMoves {
  CacheMoves moves;
  // What rows that decode write is known. It is not where who leaves depends on what was attended
  // to: `written` is of prompts alone then.
  bool all_written = true;

  PredictedMoves& operator+=(const PredictedMoves& other);
};
PredictedMoves predicted_cache_moves(LoadedModel& model, const ModelSpec& spec, const Ops& ops,
                                     const BatchShape& shape, DType kv_dtype,
                                     std::span<const Request> rows);

}  // namespace hydrant
