// Measuring cases over weights that are loaded.
#pragma once
#include <span>
#include <vector>

#include "runtime/apps/bench_report.hpp"

namespace hydrant {

// The cases' results, of which some may not fit (BenchResult::misfit): what is short of memory
// after all is left out from then on.
class BenchRun {
 public:
  // The results' `bench` are set; all outlive this. `planned`: what the model's plan has for the
  // cases.
  BenchRun(const RunConfig& config, const Model& model, Device& device, LoadedModel& loaded,
           const MemoryNeed& planned, std::span<BenchResult* const> results);

  // In turns, so that a drift of the machine's speed meets all cases alike. Throws Interrupted;
  // what has been measured stays.
  void run();

 private:
  void run_once(size_t index, bool counts);
  void add_agreement();

  const RunConfig& config_;
  const ModelSpec& spec_;
  const Ops& ops_;
  LoadedModel& loaded_;
  DType kv_dtype_;
  size_t without_rows_;  // that the process takes, once all has been used
  std::span<BenchResult* const> results_;
  std::vector<Tokens> free_tokens_;
};

}  // namespace hydrant
