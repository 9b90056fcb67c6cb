#include "runtime/text/pre_tokenizer.hpp"

namespace hydrant::text {

void PreTokenizer::add(Step step) { steps_.push_back(std::move(step)); }

void PreTokenizer::run(size_t index, std::string_view piece, bool first, const Sink& sink) const {
  if (piece.empty()) return;
  if (index == steps_.size()) return sink(piece);
  const Step& step = steps_[index];
  if (const Split* cut = std::get_if<Split>(&step)) {
    const bool last = index + 1 == steps_.size();
    if (last) return split(piece, cut->pattern, cut->behavior, cut->invert, sink);
    const char* const start = piece.data();
    split(piece, cut->pattern, cut->behavior, cut->invert, [&](std::string_view part) {
      run(index + 1, part, first && part.data() == start, sink);
    });
  } else if (const Replace* change = std::get_if<Replace>(&step)) {
    run(index + 1, replace(piece, change->pattern, change->by), first, sink);
  } else {
    const Lead& lead = std::get<Lead>(step);
    const bool wanted = (first || !lead.only_first) && !piece.starts_with(lead.text);
    if (!wanted) return run(index + 1, piece, first, sink);
    run(index + 1, lead.text + std::string(piece), first, sink);
  }
}

}  // namespace hydrant::text
