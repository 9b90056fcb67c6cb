#include "runtime/backends/cuda/kernel_fault.hpp"

#include "runtime/base/error.hpp"

namespace hydrant::cuda {

void check(const KernelFault& fault) {
  switch (FaultKind(fault.kind)) {
    case FaultKind::none:
      return;
    case FaultKind::gather_index:
      fail(Fault::internal, "gather: index {} is {}, of {} rows", fault.index, fault.found,
           fault.limit);
    case FaultKind::embedding_row:
      fail(Fault::internal, "embedding row {} of a table of {}", fault.found, fault.limit);
    case FaultKind::victim:
      fail(Fault::internal, "an evicting step at position {} has victim {} of {}", fault.index,
           fault.found, fault.limit);
    case FaultKind::rank:
      fail(Fault::internal, "rank {} of a rotary table of {} places", fault.found, fault.limit);
    case FaultKind::position:
      fail(Fault::internal, "slot {} holds position {}, not one of 0 to {}", fault.index,
           fault.found, fault.limit);
    case FaultKind::positions:
      fail(Fault::internal, "{} live slots hold only {} different positions", fault.limit,
           fault.found);
  }
}

}  // namespace hydrant::cuda
