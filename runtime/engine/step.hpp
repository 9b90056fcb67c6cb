// What one step computes. Its tokens lie one behind another: group by group, in a group first those
// of rows that decode, then the prompts'.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/engine/limits.hpp"

namespace hydrant {

// Tokens of one group that go through a layer together: one of each row that decodes, or chunks of
// prompts.
struct Piece {
  bool decode = false;
  int32_t token = 0, tokens = 0;     // of the step's
  size_t segment = 0, segments = 0;  // of the group's `decode` or the step's `chunks`
  size_t number = 0;                 // among the step's
};

// A part of a prompt; its segment counts tokens from the beginning of its piece.
struct Chunk {
  Segment segment;
  size_t prompt = 0;  // of Step::prompts
};

// A row that is admitted in this step.
struct StepPrompt {
  int32_t length = 0;
  int64_t run = -1;   // where its room outside the home begins, in runs per KV head; -1: has none
  int64_t stat = -1;  // where its column sums begin, in floats per KV head; -1: not scored
  int64_t runs = 0;   // of its keys and values; its raw keys lie behind them
};

// A row whose next token the step gives.
struct StepOutput {
  int32_t place = 0;  // in the group
  int32_t token = 0;  // its last one, of the step's tokens
};

struct GroupStep {
  int32_t group = 0;
  std::vector<Segment> decode;
  std::vector<Piece> pieces;  // the decoding one first, if there is one
  std::vector<StepOutput> outputs;
  int32_t first_output = 0;  // of all groups' outputs
};

struct Step {
  std::vector<int32_t> ids, positions;  // of each token
  std::vector<Chunk> chunks;
  std::vector<StepPrompt> prompts;
  std::vector<GroupStep> groups;              // all
  std::vector<size_t> active;                 // those that take part
  int64_t decoded = 0;                        // tokens of rows that decode
  int64_t prompt_runs = 0, prompt_stats = 0;  // room that the prompts take, per KV head

  void reserve(const JobLimits& limits);  // for any step of the job
  void clear();                           // keeps the memory
};

// The group's outputs that are tokens of this piece: side by side, for both come in order of
// tokens.
std::span<const StepOutput> outputs_of(const GroupStep& group, const Piece& piece);

size_t most_chunks(const JobLimits& limits);  // that a step can have

}  // namespace hydrant
