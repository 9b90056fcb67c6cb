#include "runtime/apps/perplexity.hpp"

#include <algorithm>

#include "runtime/apps/cache_choice.hpp"
#include "runtime/base/error.hpp"

namespace hydrant {

std::vector<Request> perplexity_windows(std::string_view text, const PromptMaker& maker,
                                        const Sources& sources) {
  const std::vector<int32_t> ids = maker.tokenizer.encode(text, /*add_special=*/true);
  if (ids.size() < 2)
    fail(Fault::bad_input, "{}: {} tokens, two are needed to judge one", maker.config.perplexity,
         ids.size());
  const bool limited = maker.cache.positions == policy::Positions::original;
  const auto limit = size_t(maker.spec.max_positions);
  const auto asked = size_t(maker.config.context);
  if (asked == 1 || (limited && asked > limit))
    fail(Fault::bad_config, "{}: must be 2 to {}, the model's limit, not {}",
         sources.name("context"), limit, asked);
  const size_t context = asked > 0 ? asked : limited ? limit : ids.size(), half = context / 2;

  std::vector<Request> windows;
  for (size_t judged = 1; judged < ids.size();) {
    const bool first = windows.empty();
    const size_t before = first ? 1 : half;
    const size_t count = std::min(first ? context - 1 : context - half, ids.size() - judged);
    const auto at = ids.begin() + ptrdiff_t(judged);
    Request window;
    window.prompt.assign(at - ptrdiff_t(before), at);
    window.forced.assign(at, at + ptrdiff_t(count));
    maker.complete(window);
    windows.push_back(std::move(window));
    judged += count;
  }
  warn_of_few_sinks(maker.cache, windows);
  return windows;
}

}  // namespace hydrant
