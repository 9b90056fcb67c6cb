// One run of a generator that ends in good order whatever happens beside it.
#pragma once
#include <span>

#include "runtime/engine/generator.hpp"

namespace hydrant {

struct JobEnd {
  RunFigures figures;
  bool interrupted = false;
};

// As Generator::run. Ends soon after Ctrl-C, and when one of the listener's functions
// throws, whose exception is then thrown from here; `cancelled` is this function's own.
JobEnd run_job(Generator& generator, std::span<const Request> requests, Listener listener);

}  // namespace hydrant
