// The largest that any step of a job can be, known before anything is computed.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/engine/generator.hpp"

namespace hydrant {

struct JobLimits {
  int32_t groups = 0, rows_per_group = 0;
  int32_t chunk_tokens = 0;   // of prompts in one piece
  int32_t piece_tokens = 0;   // of any piece
  int32_t prompts = 0;        // admitted in one step
  int32_t prompt_tokens = 0;  // of all of them
  int32_t step_tokens = 0;    // of all groups, decoding rows included
  int64_t prompt_runs = 0;    // per KV head: room outside the homes for prompts in one step
  int64_t prompt_stats = 0;   // per KV head: column sums for prompts in one step
  int64_t longest_stats = 0;  // of one prompt
  int32_t longest_prompt = 0;
  int64_t ranks = 0;           // places that rows of Positions::cache can have
  int32_t last_ranked = -1;    // position that such a row can reach; -1: there is none
  bool scored = false;         // some row is
  std::vector<int32_t> slots;  // [layer] stored per KV head by the largest row

  int32_t places() const { return groups * rows_per_group; }
  friend bool operator==(const JobLimits&, const JobLimits&) = default;
};

// The rows must have passed check_request.
JobLimits job_limits(const ModelSpec& spec, std::span<const Request> rows, const BatchShape& shape);

// True when the prompt's keys and values cannot go straight into their home in some layer: the
// prompt is longer than the slots, or the home keeps keys that are not the ones to attend.
bool needs_prompt_room(const Request& row);
bool needs_prompt_room(const policy::RowPlan& plan, int32_t length);
bool is_scored(const Request& row);             // in some layer
bool passes_context_limit(const Request& row);  // its positions are within the cache everywhere

// Room that one prompt takes.
int64_t prompt_runs_of(const Request& row);  // keys and values, and as much again for raw keys
int64_t prompt_stats_of(int32_t length);     // floats per KV head of one column statistic

}  // namespace hydrant
