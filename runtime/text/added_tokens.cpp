#include "runtime/text/added_tokens.hpp"

#include <algorithm>

#include "runtime/text/unicode.hpp"
#include "runtime/text/utf8.hpp"

namespace hydrant::text {
namespace {

bool word_before(std::string_view text, size_t at) {
  return at != 0 && is_word(character_before(text, at).code);
}
bool word_after(std::string_view text, size_t at) {
  return at != text.size() && is_word(character_at(text, at).code);
}
size_t back_over_spaces(std::string_view text, size_t at) {
  while (at != 0 && is_white_space(character_before(text, at).code)) {
    at -= character_before(text, at).size;
  }
  return at;
}
size_t over_spaces(std::string_view text, size_t at) {
  while (at != text.size() && is_white_space(character_at(text, at).code)) {
    at += character_at(text, at).size;
  }
  return at;
}

}  // namespace

void AddedTokenFinder::add(std::string_view spelling, const AddedToken& token) {
  if (spelling.empty()) return;
  uint32_t node = 0;
  for (const char byte : spelling) {
    const auto [next, is_new] = edges_.try_emplace(edge(node, byte), uint32_t(ends_.size()));
    if (is_new) ends_.push_back(-1);
    node = next->second;
  }
  if (ends_[node] >= 0) return;
  begins_[uint8_t(spelling[0])] = true;
  ends_[node] = int32_t(tokens_.size());
  tokens_.push_back(token);
}

AddedTokenFinder::Match AddedTokenFinder::match_at(std::string_view text, size_t at) const {
  Match best;
  uint32_t node = 0;
  for (size_t i = at; i < text.size(); ++i) {
    const auto next = edges_.find(edge(node, text[i]));
    if (next == edges_.end()) break;
    node = next->second;
    if (ends_[node] >= 0) best = {i + 1 - at, ends_[node]};
  }
  return best;
}

void AddedTokenFinder::cut(std::string_view text, const OnText& on_text,
                           const OnToken& on_token) const {
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const Match match = begins_[uint8_t(text[at])] ? match_at(text, at) : Match{};
    if (match.length == 0) {
      ++at;
      continue;
    }
    size_t begin = at, end = at + match.length;
    at = end;
    const AddedToken& token = tokens_[size_t(match.token)];
    if (token.single_word && (word_before(text, begin) || word_after(text, end))) continue;
    if (token.lstrip) begin = std::max(back_over_spaces(text, begin), done);
    if (token.rstrip) end = over_spaces(text, end);
    if (done < begin) on_text(text.substr(done, begin - done));
    on_token(token.id);
    done = end;
  }
  if (done < text.size()) on_text(text.substr(done));
}

}  // namespace hydrant::text
