// Which rows of the job run, where, and what their next step is.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/engine/limits.hpp"
#include "runtime/engine/step.hpp"

namespace hydrant {

// A row in flight.
struct LiveRow {
  const Request* request = nullptr;  // null: the place is free
  size_t index = 0;                  // of the row in the job
  int32_t group = 0, place = 0;      // where it runs
  int32_t processed = 0;             // positions whose keys and values are stored
  std::vector<int32_t> seen;  // ids in prompt and output, ascending; kept for the penalty only
  Completion completion;
};

// The rows of a job in the order of input, and the places they run in.
class Batch {
 public:
  Batch(std::span<const Request> rows, const BatchShape& shape, const JobLimits& limits);

  // Between steps: gives free places, the lowest first, to the next rows of the job, as many as one
  // step may admit. Calls admitted(row) for each.
  template <class Admitted>
  void admit(const Admitted& admitted) {
    int64_t tokens = 0;
    while (LiveRow* row = admit_next(tokens)) admitted(*row);
  }

  // Lays out the next step of all rows in flight: prompts that have not been processed whole, one
  // token of the others. False when no row is in flight.
  bool plan(Step& step) const;

  // The group's part of a step has been enqueued: its rows have processed what it held.
  void advance(const GroupStep& group);

  LiveRow& row(int32_t group, int32_t place) { return places_[index(group, place)]; }
  std::span<LiveRow> places() { return places_; }
  size_t begun() const { return next_; }  // rows [0, begun) have been given a place

 private:
  size_t index(int32_t group, int32_t place) const {
    return size_t(group) * size_t(limits_.rows_per_group) + size_t(place);
  }
  LiveRow* admit_next(int64_t& tokens);
  void plan_decode(Step& step, GroupStep& group) const;
  void plan_prompts(Step& step, GroupStep& group) const;

  std::span<const Request> rows_;
  int64_t prefill_tokens_;
  const JobLimits& limits_;
  size_t next_ = 0;
  std::vector<LiveRow> places_;
};

}  // namespace hydrant
