#include "runtime/text/vocabulary.hpp"

#include <bit>
#include <functional>

namespace hydrant::text {
namespace {

uint32_t hash_of(std::string_view token) {
  const uint64_t h = std::hash<std::string_view>{}(token);
  return uint32_t(h ^ (h >> 32));
}

}  // namespace

void Vocabulary::reserve(size_t tokens) {
  entries_.reserve(tokens);
  by_id_.reserve(tokens);
  rehash(std::bit_ceil(2 * tokens + 16));
}

size_t Vocabulary::slot_of(std::string_view token, uint32_t hash) const {
  const size_t mask = slots_.size() - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    if (slots_[i] == 0) return i;
    const Entry& e = entries_[slots_[i] - 1];
    if (e.hash == hash && spelling(e) == token) return i;
  }
}

void Vocabulary::rehash(size_t slots) {
  if (slots <= slots_.size()) return;
  slots_.assign(slots, 0);
  for (size_t i = 0; i < entries_.size(); ++i) {
    slots_[slot_of(spelling(entries_[i]), entries_[i].hash)] = uint32_t(i + 1);
  }
}

bool Vocabulary::add(std::string_view token, int32_t id) {
  if (2 * (entries_.size() + 1) > slots_.size()) rehash(std::bit_ceil(4 * entries_.size() + 16));
  const uint32_t hash = hash_of(token);
  const size_t slot = slot_of(token, hash);
  if (slots_[slot] != 0 || this->token(id)) return false;
  entries_.push_back({bytes_.size(), uint32_t(token.size()), hash, id});
  bytes_ += token;
  slots_[slot] = uint32_t(entries_.size());
  if (size_t(id) >= by_id_.size()) by_id_.resize(size_t(id) + 1);
  by_id_[size_t(id)] = uint32_t(entries_.size());
  return true;
}

std::optional<int32_t> Vocabulary::find(std::string_view token) const {
  if (slots_.empty()) return std::nullopt;
  const uint32_t entry = slots_[slot_of(token, hash_of(token))];
  if (entry == 0) return std::nullopt;
  return entries_[entry - 1].id;
}

std::optional<std::string_view> Vocabulary::token(int32_t id) const {
  if (id < 0 || size_t(id) >= by_id_.size() || by_id_[size_t(id)] == 0) return std::nullopt;
  return spelling(entries_[by_id_[size_t(id)] - 1]);
}

}  // namespace hydrant::text
