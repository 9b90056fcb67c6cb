// The tokenizer that both file formats describe: added tokens, normaliser, pre-tokenizer, BPE,
// template; and the way back.
#pragma once
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/text/added_tokens.hpp"
#include "runtime/text/bpe.hpp"
#include "runtime/text/decoder.hpp"
#include "runtime/text/normalizer.hpp"
#include "runtime/text/pre_tokenizer.hpp"
#include "runtime/text/tokenizer.hpp"

namespace hydrant::text {

// Ids around a text.
struct Frame {
  std::vector<int32_t> before, after;
};

class Pipeline final : public Tokenizer {
 public:
  struct Parts {
    Normalizer normalizer;
    PreTokenizer pre_tokenizer;
    Bpe bpe;
    Decoder decoder;
    Frame frame;
    std::vector<AddedToken> added;  // with their ids, of the same content only one
  };
  explicit Pipeline(Parts parts);

  std::vector<int32_t> encode(std::string_view text, bool add_special) const override;
  std::string decode(std::span<const int32_t> ids, bool skip_special) const override;
  std::string bytes_of(int32_t id, bool first, bool skip_special) const override;
  std::optional<int32_t> id_of(std::string_view token) const override;
  bool is_special(int32_t id) const override;
  bool is_byte(int32_t id) const override;
  int32_t size() const override { return size_; }
  std::string_view kind() const override;

 private:
  std::optional<std::string_view> spelling(int32_t id) const;

  Parts parts_;
  AddedTokenFinder raw_, normalized_;                // where each added token is looked for
  std::unordered_map<int32_t, size_t> added_by_id_;  // -> parts_.added
  std::unordered_map<std::string, int32_t> added_by_content_;
  int32_t size_ = 0;
};

}  // namespace hydrant::text
