#include "runtime/text/normalizer.hpp"

#include "runtime/text/utf8.hpp"

namespace hydrant::text {
namespace {

struct Apply {
  std::string_view text;

  std::string operator()(NormalForm form) const { return normalized(text, form); }
  std::string operator()(Fold fold) const {
    return fold == Fold::lower_case ? lower_case(text) : without_marks(text);
  }
  std::string operator()(const Replace& step) const { return replace(text, step.pattern, step.by); }
  std::string operator()(const Prepend& step) const {
    std::string out(text);
    return text.empty() ? out : out.insert(0, step.text);
  }
  std::string operator()(const StripSpace& step) const {
    std::string_view rest = text;
    while (step.left && !rest.empty() && is_white_space(character_at(rest, 0).code)) {
      rest.remove_prefix(character_at(rest, 0).size);
    }
    while (step.right && !rest.empty() &&
           is_white_space(character_before(rest, rest.size()).code)) {
      rest.remove_suffix(character_before(rest, rest.size()).size);
    }
    return std::string(rest);
  }
};

}  // namespace

void Normalizer::add(Step step) { steps_.push_back(std::move(step)); }

std::string Normalizer::apply(std::string_view text) const {
  std::string out(text);
  for (const Step& step : steps_) out = std::visit(Apply{out}, step);
  return out;
}

}  // namespace hydrant::text
