#include "runtime/apps/row_text.hpp"

#include <algorithm>

namespace hydrant {

RowText::RowText(const text::Tokenizer& tokenizer, const Request& request,
                 const std::vector<std::string>& stops)
    : request_(request), decoder_(tokenizer, request.prompt), stops_(stops) {}

std::string RowText::push(int32_t id) {
  const auto& ends = request_.stop_ids;
  if (std::find(ends.begin(), ends.end(), id) != ends.end()) return "";
  return stops_.push(decoder_.push(id));
}

std::string RowText::finish() {
  std::string rest = stops_.push(decoder_.finish());
  return rest + stops_.finish();
}

}  // namespace hydrant
