// Operations that only say what they would touch.
#pragma once
#include <memory>

#include "runtime/device/ops.hpp"

namespace hydrant::test {

std::unique_ptr<Ops> recording_ops();

}  // namespace hydrant::test
