#include "runtime/apps/trace_file.hpp"

#include "runtime/apps/output.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/trace.hpp"

namespace hydrant {

TraceFile::TraceFile(const RunConfig& config) : path_(config.trace) {
  if (!path_.empty()) trace::begin();
}

void TraceFile::write() const {
  if (path_.empty()) return;
  size_t dropped = 0;
  write_file(path_, trace::chrome_json(dropped));
  if (dropped > 0)
    log::warning("{}: the first {} spans; {} more have no room", path_, trace::kMostSpans, dropped);
}

}  // namespace hydrant
