// A text as rows to score: a sliding context.
#pragma once
#include <string_view>
#include <vector>

#include "runtime/apps/rows.hpp"

namespace hydrant {

// The first window judges every token after the first (the BOS, where the model has one); each
// further one is prefilled with the half a context before it and judges the next half, so every
// token is judged once. A context is as long as the configuration says, else as the model's limit;
// with positions in the cache, whose length has no limit, one window takes all. Throws bad_input
// for a text of fewer than two tokens, bad_config for a context that the model does not have.
std::vector<Request> perplexity_windows(std::string_view text, const PromptMaker& maker,
                                        const Sources& sources);

}  // namespace hydrant
