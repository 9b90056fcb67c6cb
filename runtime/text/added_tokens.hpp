// Tokens that are found in the text itself before anything is merged: "<s>", "<|im_end|>", ...
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace hydrant::text {

struct AddedToken {
  std::string content;
  int32_t id = -1;
  bool special = false;
  bool single_word = false;             // not as a part of a longer word
  bool lstrip = false, rstrip = false;  // takes the white space beside it along
  bool normalized = false;              // is looked for in the normalised text
};

// Finds added tokens, leftmost first, of several that begin together the longest.
class AddedTokenFinder {
 public:
  // `spelling` is what is looked for; empty ones are never found.
  void add(std::string_view spelling, const AddedToken& token);

  // Cuts the text: on_text(part) for what lies between, on_token(id); both in order.
  using OnText = std::function<void(std::string_view)>;
  using OnToken = std::function<void(int32_t)>;
  void cut(std::string_view text, const OnText& on_text, const OnToken& on_token) const;

 private:
  struct Match {
    size_t length = 0;
    int32_t token = -1;  // index
  };
  Match match_at(std::string_view text, size_t at) const;
  static uint64_t edge(uint32_t node, char byte) { return uint64_t{node} << 8 | uint8_t(byte); }

  std::vector<AddedToken> tokens_;
  std::array<bool, 256> begins_{};                // some token begins with this byte
  std::unordered_map<uint64_t, uint32_t> edges_;  // a trie: (node, byte) -> node; 0 is the root
  std::vector<int32_t> ends_ = {-1};              // by node: the token that ends there
};

}  // namespace hydrant::text
