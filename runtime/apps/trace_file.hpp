// Where a run's trace goes.
#pragma once
#include "runtime/apps/run_config.hpp"

namespace hydrant {

// Traces while it lives, if the configuration names a file.
class TraceFile {
 public:
  // Throws io when the file cannot be written.
  TraceFile(const RunConfig& config, const Sources& sources);
  void write() const;  // what has been traced so far

 private:
  std::string path_;
};

}  // namespace hydrant
