#include "runtime/text/bpe.hpp"

#include <algorithm>
#include <bit>

#include "runtime/base/error.hpp"
#include "runtime/text/byte_level.hpp"
#include "runtime/text/utf8.hpp"

namespace hydrant::text {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581
constexpr size_t kShort = 48;  // up to here a plain search for the best pair beats a heap

// Where the first run of space marks after other characters begins; npos: nowhere.
size_t inner_space(std::string_view word, size_t from = 0) {
  for (size_t at = word.find(kSpaceMark, from); at != std::string_view::npos;
       at = word.find(kSpaceMark, at + kSpaceMark.size())) {
    if (at != 0 && !word.substr(0, at).ends_with(kSpaceMark)) return at;
  }
  return std::string_view::npos;
}

}  // namespace

size_t MergeTable::slot_of(uint64_t key) const {
  const size_t mask = slots_.size() - 1;
  uint64_t h = key * 0x9E3779B97F4A7C15u;
  for (size_t i = size_t(h ^ (h >> 32)) & mask;; i = (i + 1) & mask) {
    if (slots_[i].key == key || slots_[i].key == kFree) return i;
  }
}

void MergeTable::reserve(size_t merges) {
  const size_t wanted = std::bit_ceil(2 * merges + 16);
  if (wanted <= slots_.size()) return;
  std::vector<Slot> old(wanted);
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.key != kFree) slots_[slot_of(slot.key)] = slot;
  }
}

void MergeTable::set(int32_t left, int32_t right, Merge merge) {
  if (2 * (used_ + 1) > slots_.size()) reserve(2 * used_ + 16);
  Slot& slot = slots_[slot_of(key(left, right))];
  used_ += slot.key == kFree;
  slot = {key(left, right), merge};
}

const MergeTable::Merge* MergeTable::find(int32_t left, int32_t right) const {
  if (slots_.empty()) return nullptr;
  const Slot& slot = slots_[slot_of(key(left, right))];
  return slot.key == kFree ? nullptr : &slot.merge;
}

Bpe::Bpe(Vocabulary vocabulary, MergeTable merges, BpeOptions options)
    : vocabulary_(std::move(vocabulary)),
      merges_(std::move(merges)),
      options_(std::move(options)),
      plain_(options_.prefix.empty() && options_.suffix.empty()) {
  const auto id = [&](std::string_view token) { return vocabulary_.find(token).value_or(-1); };
  for (int i = 0; i < 256; ++i) {
    of_byte_[size_t(i)] = id(byte_letter(uint8_t(i)));
    fallback_[size_t(i)] = id(fmt::format("<0x{:02X}>", i));
  }
  for (int i = 0; i < 128; ++i) of_ascii_[size_t(i)] = id(std::string(1, char(i)));

  // A whole text without a pre-tokenizer is one word. It falls apart at spaces unless some token
  // holds a space after something else.
  cut_at_spaces_ = plain_ && !options_.ignore_merges && vocabulary_.find(kSpaceMark);
  for (int32_t i = 0; cut_at_spaces_ && i < vocabulary_.size(); ++i) {
    const auto token = vocabulary_.token(i);
    if (token && inner_space(*token) != std::string_view::npos) cut_at_spaces_ = false;
  }
}

void Bpe::encode(std::string_view word, bool byte_level, std::vector<int32_t>& out) const {
  const size_t start = out.size();
  if (options_.ignore_merges) {
    const auto id = vocabulary_.find(byte_level ? to_byte_letters(word) : word);
    if (id) return out.push_back(*id);
  }
  if (byte_level && !plain_) {
    encode_characters(to_byte_letters(word), out);
  } else if (byte_level) {
    bool pending = false;
    for (const char c : word) {
      const int32_t id = of_byte_[uint8_t(c)];
      if (id < 0) {
        add_unknown(byte_letter(uint8_t(c)), pending, out);
        continue;
      }
      if (pending) out.push_back(*options_.unknown);
      pending = false;
      out.push_back(id);
    }
    if (pending) out.push_back(*options_.unknown);
  } else {
    while (cut_at_spaces_ && word.size() > kShort) {
      const size_t at = inner_space(word);
      if (at == std::string_view::npos) break;
      const size_t from = out.size();
      encode_characters(word.substr(0, at), out);
      merge(out, from);
      word.remove_prefix(at);
    }
    const size_t from = out.size();
    encode_characters(word, out);
    return merge(out, from);
  }
  merge(out, start);
}

void Bpe::encode_characters(std::string_view word, std::vector<int32_t>& out) const {
  bool pending = false;
  std::string spelt;
  for (size_t i = 0; i < word.size();) {
    const size_t size = character_at(word, i).size;
    std::string_view character = word.substr(i, size);
    int32_t id = -1;
    if (plain_) {
      id = size == 1 ? of_ascii_[uint8_t(character[0])] : vocabulary_.find(character).value_or(-1);
    } else {
      spelt = i == 0 ? "" : options_.prefix;
      spelt += character;
      if (i + size == word.size()) spelt += options_.suffix;
      character = spelt;
      id = vocabulary_.find(character).value_or(-1);
    }
    i += size;
    if (id < 0) {
      add_unknown(character, pending, out);
      continue;
    }
    if (pending) out.push_back(*options_.unknown);
    pending = false;
    out.push_back(id);
  }
  if (pending) out.push_back(*options_.unknown);
}

// `pending`: an unknown token waits to be written, after the next known character at the latest.
// That bytes overtake it is what Hugging Face does.
void Bpe::add_unknown(std::string_view character, bool& pending, std::vector<int32_t>& out) const {
  const auto has_byte = [&](char c) { return fallback_[uint8_t(c)] >= 0; };
  if (options_.byte_fallback && std::all_of(character.begin(), character.end(), has_byte)) {
    for (const char c : character) out.push_back(fallback_[uint8_t(c)]);
    return;
  }
  if (!options_.unknown) return;
  if (pending && !options_.fuse_unknown) out.push_back(*options_.unknown);
  pending = true;
}

void Bpe::merge(std::vector<int32_t>& ids, size_t from) const {
  if (ids.size() - from < 2) return;
  if (ids.size() - from <= kShort) {
    merge_short(ids, from);
  } else {
    merge_long(ids, from);
  }
}

void Bpe::merge_short(std::vector<int32_t>& ids, size_t from) const {
  constexpr MergeTable::Merge none{~uint32_t{0}, -1};
  int32_t* const id = ids.data() + from;
  size_t count = ids.size() - from;
  std::array<MergeTable::Merge, kShort> pairs;  // pairs[i] is (i, i + 1)
  const auto look_up = [&](size_t i) {
    const MergeTable::Merge* found = merges_.find(id[i], id[i + 1]);
    pairs[i] = found ? *found : none;
  };
  for (size_t i = 0; i + 1 < count; ++i) look_up(i);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (pairs[i].rank < pairs[best].rank) best = i;
    }
    if (pairs[best].result < 0) break;
    id[best] = pairs[best].result;
    std::copy(id + best + 2, id + count, id + best + 1);
    std::copy(pairs.begin() + best + 1, pairs.begin() + count - 1, pairs.begin() + best);
    --count;
    if (best > 0) look_up(best - 1);
    if (best + 1 < count) look_up(best);
  }
  ids.resize(from + count);
}

void Bpe::merge_long(std::vector<int32_t>& ids, size_t from) const {
  struct Symbol {
    int32_t id;
    uint32_t previous, next;
  };
  struct Candidate {
    uint64_t order;  // rank, then position
    int32_t left, right;
    bool operator<(const Candidate& other) const { return order > other.order; }
  };
  const uint32_t count = uint32_t(ids.size() - from), nowhere = ~uint32_t{0};
  std::vector<Symbol> symbols(count);
  for (uint32_t i = 0; i < count; ++i) {
    symbols[i] = {ids[from + i], i == 0 ? nowhere : i - 1, i + 1 == count ? nowhere : i + 1};
  }
  std::vector<Candidate> heap;
  const auto candidate = [&](uint32_t at) {
    const int32_t left = symbols[at].id, right = symbols[symbols[at].next].id;
    const MergeTable::Merge* merge = merges_.find(left, right);
    if (merge) heap.push_back({uint64_t{merge->rank} << 32 | at, left, right});
    return merge != nullptr;
  };
  for (uint32_t i = 0; i + 1 < count; ++i) candidate(i);
  std::make_heap(heap.begin(), heap.end());
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end());
    const Candidate best = heap.back();
    heap.pop_back();
    const uint32_t at = uint32_t(best.order);
    Symbol& left = symbols[at];
    // Stale when either side has grown or gone (id -1) since it was noted.
    if (left.id != best.left || left.next == nowhere) continue;
    Symbol& right = symbols[left.next];
    if (right.id != best.right) continue;
    left.id = merges_.find(best.left, best.right)->result;
    right.id = -1;
    left.next = right.next;
    if (left.next != nowhere) symbols[left.next].previous = at;
    if (left.previous != nowhere && candidate(left.previous)) {
      std::push_heap(heap.begin(), heap.end());
    }
    if (left.next != nowhere && candidate(at)) std::push_heap(heap.begin(), heap.end());
  }
  ids.resize(from);
  for (uint32_t i = 0; i != nowhere; i = symbols[i].next) ids.push_back(symbols[i].id);
}

}  // namespace hydrant::text
