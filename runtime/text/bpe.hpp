// Byte-pair encoding of one word.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/vocabulary.hpp"

namespace hydrant::text {

struct BpeOptions {
  std::optional<int32_t> unknown;  // for characters without a token; without it they vanish
  std::string prefix, suffix;      // of characters after the first, of the last one
  bool fuse_unknown = false;       // neighbouring unknown characters are one token
  bool byte_fallback = false;      // rather the tokens <0x00>..<0xFF>, if they exist
  bool ignore_merges = false;      // a word that is a token is that token
};

// (left, right) -> what they become and how early. Open addressing.
class MergeTable {
 public:
  struct Merge {
    uint32_t rank;
    int32_t result;
  };
  void reserve(size_t merges);
  void set(int32_t left, int32_t right, Merge merge);  // the last one stays
  const Merge* find(int32_t left, int32_t right) const;

 private:
  struct Slot {
    uint64_t key = kFree;
    Merge merge{};
  };
  static constexpr uint64_t kFree = ~uint64_t{0};
  static uint64_t key(int32_t left, int32_t right) {
    return uint64_t(uint32_t(left)) << 32 | uint32_t(right);
  }
  size_t slot_of(uint64_t key) const;

  std::vector<Slot> slots_;
  size_t used_ = 0;
};

class Bpe {
 public:
  // Lower ranks merge first, among equal ranks the leftmost pair.
  Bpe(Vocabulary vocabulary, MergeTable merges, BpeOptions options);

  const Vocabulary& vocabulary() const { return vocabulary_; }
  // Appends the ids of a word. In a byte-level word every byte is a character, spelt in GPT-2's
  // alphabet. O(n log n).
  void encode(std::string_view word, bool byte_level, std::vector<int32_t>& out) const;

 private:
  void encode_characters(std::string_view word, std::vector<int32_t>& out) const;
  void add_unknown(std::string_view character, bool& pending, std::vector<int32_t>& out) const;
  void merge(std::vector<int32_t>& ids, size_t from) const;
  void merge_short(std::vector<int32_t>& ids, size_t from) const;
  void merge_long(std::vector<int32_t>& ids, size_t from) const;

  Vocabulary vocabulary_;
  MergeTable merges_;
  BpeOptions options_;
  std::array<int32_t, 256> of_byte_;   // -1: the byte's letter has no token
  std::array<int32_t, 128> of_ascii_;  // likewise for ASCII characters
  std::array<int32_t, 256> fallback_;  // <0x00>..<0xFF>
  bool plain_;                         // no prefix, no suffix
  bool cut_at_spaces_ = false;         // no merge crosses the start of a run of U+2581
};

}  // namespace hydrant::text
