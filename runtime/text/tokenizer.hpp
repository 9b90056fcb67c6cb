// Text <-> token ids, equal to Hugging Face's tokenizers.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hydrant::text {

// Immutable after loading; may be used from several threads.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  // Any bytes are accepted; invalid UTF-8 becomes U+FFFD first (how many stand for a run is left
  // open). `add_special` applies the post-processor (BOS and so on); text that spells a special
  // token is that token either way.
  virtual std::vector<int32_t> encode(std::string_view text, bool add_special) const = 0;
  // Valid UTF-8 always: bytes that are none become U+FFFD. Ids without a token decode to nothing.
  // No clean-up of spaces.
  virtual std::string decode(std::span<const int32_t> ids, bool skip_special) const = 0;
  // The id's contribution to a decoded text as raw bytes (an incomplete character stays
  // incomplete); `first`: it starts the text (SentencePiece drops a leading space there).
  virtual std::string bytes_of(int32_t id, bool first, bool skip_special) const = 0;

  virtual std::optional<int32_t> id_of(
      std::string_view token) const = 0;  // exact spelling in the vocabulary
  virtual bool is_special(int32_t id) const = 0;
  // A byte token of SentencePiece ("<0xE2>"): a run of them is text only when all of it is valid
  // UTF-8, otherwise each of them is one U+FFFD.
  virtual bool is_byte(int32_t id) const = 0;
  virtual int32_t size() const = 0;           // highest id + 1
  virtual std::string_view kind() const = 0;  // "byte-level BPE", "SentencePiece BPE"
};

// Reads a Hugging Face tokenizer.json. Throws bad_file naming the file and the JSON path, for
// damage and for parts (models, normalizers, pre-tokenizers, decoders, post-processors) that are
// not supported.
std::unique_ptr<Tokenizer> load_tokenizer_json(const std::string& path);

// What a GGUF file says of its tokenizer (keys tokenizer.ggml.*).
struct GgufVocabulary {
  std::string file;        // for messages
  std::string model, pre;  // "llama" | "gpt2"; "llama-bpe", "smollm", ...
  std::vector<std::string> tokens;
  std::vector<float> scores;
  std::vector<int32_t> types;  // 1 normal, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte
  std::vector<std::string> merges;
  int32_t bos = -1, eos = -1, unknown = -1;
  std::optional<bool> add_bos, add_eos, add_space_prefix;
};
std::unique_ptr<Tokenizer> make_gguf_tokenizer(GgufVocabulary vocabulary);

}  // namespace hydrant::text
