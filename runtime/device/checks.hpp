// What every operation demands of its arguments, checked once for all backends.
#pragma once
#include "runtime/device/ops.hpp"

namespace hydrant {

// Each throws internal, naming the operation and the argument, when a shape, a type, an index of a
// segment or an overlap of memory is not as ops.hpp says. They look at arguments only, never at
// device memory, and allocate nothing when all is well.
void check(const EmbedArgs& args);
void check(const RotaryTableArgs& args);
void check(const NormalizeArgs& args);
void check(const LinearArgs& args);
void check(const GateArgs& args);
void check(const GatherArgs& args);
void check(const SplitDecodeArgs& args);
void check(const SplitPromptArgs& args);
void check(const AttendPromptArgs& args);
void check(const SummarizePromptArgs& args);
void check(const StorePromptArgs& args);
void check(const AttendDecodeArgs& args);
void check(const SettleArgs& args);
void check(const StoreDecodeArgs& args);
void check(const SummarizeLogitsArgs& args);

}  // namespace hydrant
