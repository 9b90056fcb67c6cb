// Where a run's trace goes.
#pragma once
#include "runtime/apps/run_config.hpp"

namespace hydrant {

// Traces while it lives, if the configuration names a file.
class TraceFile {
 public:
  explicit TraceFile(const RunConfig& config);
  void write() const;  // what has been traced so far

 private:
  std::string path_;
};

}  // namespace hydrant
