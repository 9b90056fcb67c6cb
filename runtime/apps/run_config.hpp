// What one run is asked to do: the same words as JSON keys and as flags. config_keys.cpp gives each
// its path, flag, rule and meaning; here are only types and defaults.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "offload/shares.hpp"
#include "runtime/engine/generator.hpp"

namespace hydrant {

struct CacheConfig {
  std::string policy = "full";
  std::optional<int32_t> heavy, recent, sinks;  // slots
  std::string budget;  // "": not given; "204" slots, "20%" of prompt + output, "20%p" of the prompt
  std::vector<std::string> layer_budgets;  // one for each layer, instead of budget
  std::string positions = "original";
  std::string dtype = "auto";
};

struct MemoryConfig {
  std::optional<uint64_t> device, host, disk;  // caps in bytes
  std::string folder;                          // of what goes to disk; "": /var/tmp
  std::optional<uint64_t> link;                // bytes a second from host to device
};

struct PlacementConfig {
  bool automatic = true;  // then the shares are still to be found
  Shares weights{}, cache{}, activations{};

  friend bool operator==(const PlacementConfig&, const PlacementConfig&) = default;
};

struct PrefetchConfig {
  int32_t weight_slots = 2, cache_slots = 2;
  std::optional<int32_t> disk_lanes;  // none: as many of WeightOffload's as there is memory for
};

struct BatchConfig {
  int32_t rows_per_group = 32, groups = 1;
  int32_t prefill_chunk = BatchShape().prefill_chunk, prefill_tokens = BatchShape().prefill_tokens;
};

struct SamplingConfig {
  double temperature = 0, top_p = 1, min_p = 0, repetition_penalty = 1;
  int32_t top_k = 0;
};

// Instead of a model: a shape whose weights are made up.
struct SyntheticConfig {
  std::string shape, format = "auto";
};

struct BenchConfig {
  std::vector<int32_t> prompt_len{512}, output_len{128}, batch{1};
  std::vector<std::string> policy{"full", "h2o"}, budget{"20%"};
  std::vector<PlacementConfig> placement;  // to compare; none: the run's own
  int32_t warmup = 1, repeats = 3;
  bool agreement = true;
  std::string text, json, csv;  // files
  std::string profile;          // to predict with; "": none
};

struct InspectConfig {
  int32_t batch = 1;
  int32_t length = 0, prompt_len = 0;  // 0: the model's limit; all but one of them
  bool json = false;
  bool devices = false;
};

struct ProfileConfig {
  std::string output, folder = "/var/tmp";
};

struct PlanConfig {
  std::string profile, output;  // files
  int32_t prompt_len = 512, output_len = 128;
  int32_t rows = 0;  // of the job; 0: as many as run together
  std::string policy = "full";
  std::vector<std::string> budget{"20%"};
  bool explain = false;
};

struct RunConfig {
  std::string model;
  SyntheticConfig synthetic;
  CacheConfig cache;
  std::string compute_dtype = "auto";
  MemoryConfig memory;
  PlacementConfig placement;
  PrefetchConfig prefetch;
  bool overlap = true;
  std::string cache_compute = "auto";
  BatchConfig batch;
  SamplingConfig sampling;
  uint64_t seed = 0;
  int32_t max_new_tokens = 256;
  bool ignore_eos = false;
  std::vector<std::string> stop;
  std::vector<int32_t> stop_ids;
  bool chat = false;
  std::string system;
  int32_t logprobs = 0;
  bool report_kept = false;

  std::optional<std::string> prompt;  // its text, "-" for standard input
  std::string prompts, input, output, perplexity;
  bool resume = false, overwrite = false;  // an output that is there
  int32_t context = 0;                     // of --perplexity; 0: the model's limit

  int32_t threads = 0;  // 0: all usable cores
  std::string isa, device;
  bool quiet = false;
  std::string trace;  // a file; "": none

  BenchConfig bench;
  InspectConfig inspect;
  ProfileConfig profile;
  PlanConfig plan;
};

// Where each key that was given came from: path -> what a message calls it ("run.json: cache.heavy"
// or "--heavy"). A key that was not given is missing from the file, if there is one, else from the
// flags.
class Sources {
 public:
  void add(const std::string& path, std::string called) { given_[path] = std::move(called); }
  void set_file(std::string name) { file_ = std::move(name); }
  void set_flag(const std::string& path, std::string flag) { flags_[path] = std::move(flag); }
  bool given(const std::string& path) const { return given_.contains(path); }
  std::string name(const std::string& path) const {
    if (const auto it = given_.find(path); it != given_.end()) return it->second;
    if (!file_.empty()) return file_ + ": " + path;
    const auto flag = flags_.find(path);
    return flag != flags_.end() ? flag->second : path;
  }
  // "run.json: a, b", of keys that were given.
  std::string names(const std::vector<const char*>& paths) const {
    std::string all;
    for (const char* path : paths) {
      const std::string called = name(path);
      all += all.empty() ? called : ", " + (called.starts_with("--") ? called : path);
    }
    return all;
  }
  void forget(const std::string& path) { given_.erase(path); }
  const std::string& file() const { return file_; }  // --config's; "": none

 private:
  std::map<std::string, std::string> given_, flags_;
  std::string file_;
};

}  // namespace hydrant
