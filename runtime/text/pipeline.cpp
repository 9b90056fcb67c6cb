#include "runtime/text/pipeline.hpp"

#include <algorithm>

#include "runtime/text/stream_decoder.hpp"
#include "runtime/text/utf8.hpp"

namespace hydrant::text {

Pipeline::Pipeline(Parts parts) : parts_(std::move(parts)), size_(parts_.bpe.vocabulary().size()) {
  for (size_t i = 0; i < parts_.added.size(); ++i) {
    const AddedToken& token = parts_.added[i];
    added_by_id_.insert_or_assign(token.id, i);
    added_by_content_.insert_or_assign(token.content, token.id);
    size_ = std::max(size_, token.id + 1);
    if (token.normalized) {
      normalized_.add(parts_.normalizer.apply(token.content), token);
    } else {
      raw_.add(token.content, token);
    }
  }
}

std::vector<int32_t> Pipeline::encode(std::string_view text, bool add_special) const {
  std::string repaired;
  append_repaired(repaired, text);

  std::vector<int32_t> ids;
  ids.reserve(repaired.size() / 3 + 8);
  if (add_special) ids = parts_.frame.before;
  const bool byte_level = parts_.pre_tokenizer.byte_level();
  const Sink on_word = [&](std::string_view word) { parts_.bpe.encode(word, byte_level, ids); };
  const AddedTokenFinder::OnToken on_token = [&](int32_t id) { ids.push_back(id); };
  raw_.cut(
      repaired,
      [&](std::string_view part) {
        const bool starts_text = part.data() == repaired.data();
        const std::string changed = parts_.normalizer.apply(part);
        normalized_.cut(
            changed,
            [&](std::string_view piece) {
              const bool first = starts_text && piece.data() == changed.data();
              parts_.pre_tokenizer.run(piece, first, on_word);
            },
            on_token);
      },
      on_token);
  if (add_special) ids.insert(ids.end(), parts_.frame.after.begin(), parts_.frame.after.end());
  return ids;
}

std::string Pipeline::decode(std::span<const int32_t> ids, bool skip_special) const {
  StreamDecoder decoder(*this, {}, skip_special);
  std::string out;
  for (const int32_t id : ids) out += decoder.push(id);
  return out += decoder.finish();
}

std::optional<std::string_view> Pipeline::spelling(int32_t id) const {
  const auto added = added_by_id_.find(id);
  if (added != added_by_id_.end()) return parts_.added[added->second].content;
  return parts_.bpe.vocabulary().token(id);
}

std::string Pipeline::bytes_of(int32_t id, bool first, bool skip_special) const {
  const auto token = spelling(id);
  if (!token || (skip_special && is_special(id))) return {};
  return parts_.decoder.decode(*token, first);
}

std::optional<int32_t> Pipeline::id_of(std::string_view token) const {
  const auto added = added_by_content_.find(std::string(token));
  if (added != added_by_content_.end()) return added->second;
  return parts_.bpe.vocabulary().find(token);
}

bool Pipeline::is_special(int32_t id) const {
  const auto added = added_by_id_.find(id);
  return added != added_by_id_.end() && parts_.added[added->second].special;
}

bool Pipeline::is_byte(int32_t id) const {
  const auto token = spelling(id);
  return token && parts_.decoder.byte_of(*token).has_value();
}

std::string_view Pipeline::kind() const {
  return parts_.pre_tokenizer.byte_level() ? "byte-level BPE" : "SentencePiece BPE";
}

}  // namespace hydrant::text
