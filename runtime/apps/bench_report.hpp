// What `bench` measured, as a table, as JSON and as CSV.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "offload/cost_model.hpp"
#include "runtime/apps/agreement.hpp"
#include "runtime/apps/traffic_meter.hpp"

namespace hydrant {

struct RunTimes {  // one repeat
  double prefill_seconds = 0, decode_seconds = 0;
};

struct BenchResult {
  const BenchCase* bench = nullptr;
  std::string misfit;          // why memory is not enough for it; "": it is
  std::vector<RunTimes> runs;  // none where it is not
  Shares weight_homes{}, cache_homes{};
  int disk_lanes = 0;  // 0: no weights are read from disk
  std::string weight_format, activations;
  size_t kv = 0, full_kv = 0, workspace = 0, weights = 0;
  size_t peak = 0, predicted_peak = 0;
  double decode_bytes = 0;     // weights and cache that one run's decode steps must read
  Traffic traffic;             // of the runs together
  PredictedMoves cache_moves;  // the same
  std::optional<Agreement> agreement;
  std::optional<Prediction> prediction;  // by the profile that was given
};

// What all rows of a report share.
struct BenchMachine {
  std::string kv_dtype, isa;
  int threads = 0;
  std::optional<uint64_t> link;     // the pace that copies to the device are held to
  bool synthetic = false;           // the weights
  std::optional<double> bandwidth;  // bytes per second that this machine can read
};

nlohmann::ordered_json json_row(const BenchResult& result, const BenchMachine& machine);
inline constexpr const char* kCsvBeginning = "policy,budget,budget_slots,";
std::string csv_text(const std::vector<nlohmann::ordered_json>& rows);
std::string table_text(const std::vector<nlohmann::ordered_json>& rows);

}  // namespace hydrant
