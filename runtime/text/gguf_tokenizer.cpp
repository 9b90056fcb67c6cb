#include <algorithm>
#include <string>

#include "runtime/base/error.hpp"
#include "runtime/text/gguf_words.hpp"
#include "runtime/text/pipeline.hpp"
#include "runtime/text/utf8.hpp"

namespace hydrant::text {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

enum TokenType : int32_t {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6
};

void check_sizes(const GgufVocabulary& file) {
  const size_t count = file.tokens.size();
  const auto need = [&](bool holds, std::string_view key, size_t found) {
    if (!holds) {
      fail(Fault::bad_file, "{}: tokenizer.ggml.{}: {} entries, but there are {} tokens", file.file,
           key, found, count);
    }
  };
  if (count == 0 || count > size_t(kHighestId) + 1) {
    fail(Fault::bad_file, "{}: tokenizer.ggml.tokens: {} entries, expected 1 to {}", file.file,
         count, kHighestId + 1);
  }
  need(file.types.empty() || file.types.size() == count, "token_type", file.types.size());
  need(file.scores.empty() || file.scores.size() == count, "scores", file.scores.size());
  const auto need_id = [&](int32_t id, std::string_view key) {
    if (id >= 0 && size_t(id) >= count) {
      fail(Fault::bad_file, "{}: tokenizer.ggml.{}: {}, but there are {} tokens", file.file, key,
           id, count);
    }
  };
  need_id(file.bos, "bos_token_id");
  need_id(file.eos, "eos_token_id");
  need_id(file.unknown, "unknown_token_id");
}

class Builder {
 public:
  explicit Builder(GgufVocabulary file) : file_(std::move(file)) { check_sizes(file_); }

  std::unique_ptr<Tokenizer> byte_level() {
    const GgufWords& known = gguf_words(file_);
    PreTokenizer pre;
    for (const std::string_view expression : known.expressions) {
      pre.add(Split{Regex(expression, "a built-in expression"), Behavior::isolated, false});
    }
    pre.set_byte_level();
    BpeOptions options;
    options.ignore_merges = known.ignore_merges;
    Decoder decoder;
    decoder.bytes = Decoder::Bytes::letters;
    const Frame around = frame(known.adds_bos);
    add_tokens();
    MergeTable merges = listed_merges();
    return std::make_unique<Pipeline>(
        Pipeline::Parts{Normalizer(), std::move(pre),
                        Bpe(std::move(vocabulary_), std::move(merges), std::move(options)),
                        std::move(decoder), around, std::move(added_)});
  }

  std::unique_ptr<Tokenizer> sentencepiece() {
    const bool lead = file_.add_space_prefix.value_or(true);
    Normalizer normalizer;
    if (lead) normalizer.add(Prepend{std::string(kSpaceMark)});
    normalizer.add(Replace{std::string(" "), std::string(kSpaceMark)});
    BpeOptions options;
    options.byte_fallback = options.fuse_unknown = true;
    if (file_.unknown >= 0) options.unknown = file_.unknown;
    Decoder decoder;
    decoder.bytes = Decoder::Bytes::fallback;
    decoder.steps.push_back(Replace{std::string(kSpaceMark), " "});
    if (lead) decoder.dropped_at_start.assign(1, ' ');
    const Frame around = frame(true);
    add_tokens();
    MergeTable merges = scored_merges();
    return std::make_unique<Pipeline>(
        Pipeline::Parts{std::move(normalizer), PreTokenizer(),
                        Bpe(std::move(vocabulary_), std::move(merges), std::move(options)),
                        std::move(decoder), around, std::move(added_)});
  }

 private:
  int32_t type(size_t id) const { return file_.types.empty() ? int32_t(normal) : file_.types[id]; }

  Frame frame(bool adds_bos) const {
    Frame out;
    if (file_.add_bos.value_or(adds_bos) && file_.bos >= 0) out.before.push_back(file_.bos);
    if (file_.add_eos.value_or(false) && file_.eos >= 0) out.after.push_back(file_.eos);
    return out;
  }

  // Padding of a vocabulary repeats a spelling now and then: the first id has it.
  void add_tokens() {
    vocabulary_.reserve(file_.tokens.size());
    for (size_t id = 0; id < file_.tokens.size(); ++id) {
      const std::string& token = file_.tokens[id];
      if (!is_utf8(token)) {
        fail(Fault::bad_file, "{}: tokenizer.ggml.tokens[{}] is not valid UTF-8", file_.file, id);
      }
      vocabulary_.add(token, int32_t(id));
      const bool special = type(id) == control || type(id) == unknown;
      if (!special && type(id) != user_defined) continue;
      AddedToken added;
      added.content = token;
      added.id = int32_t(id);
      added.special = special;
      added_.push_back(std::move(added));
    }
  }

  MergeTable listed_merges() const {
    MergeTable table;
    table.reserve(file_.merges.size());
    for (size_t i = 0; i < file_.merges.size(); ++i) {
      const std::string_view merge = file_.merges[i];
      const size_t space = merge.find(' ', 1);  // a token may begin with a space
      if (space == std::string_view::npos) {
        fail(Fault::bad_file, "{}: tokenizer.ggml.merges[{}]: expected two tokens, found \"{}\"",
             file_.file, i, merge);
      }
      const std::string_view left = merge.substr(0, space), right = merge.substr(space + 1);
      const auto id = [&](std::string_view token) {
        const auto found = vocabulary_.find(token);
        if (!found) {
          fail(Fault::bad_file, "{}: tokenizer.ggml.merges[{}]: \"{}\" is not in the vocabulary",
               file_.file, i, token);
        }
        return *found;
      };
      const int32_t left_id = id(left), right_id = id(right);
      table.set(left_id, right_id, {uint32_t(i), id(std::string(left).append(right))});
    }
    return table;
  }

  // SentencePiece merges any two neighbours that together are a token, the best score first.
  MergeTable scored_merges() const {
    if (file_.scores.empty()) {
      fail(Fault::bad_file, "{}: tokenizer.ggml.scores is missing", file_.file);
    }
    std::vector<int32_t> order;
    for (size_t id = 0; id < file_.tokens.size(); ++id) {
      if (mergeable(int32_t(id))) order.push_back(int32_t(id));
    }
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return file_.scores[size_t(a)] > file_.scores[size_t(b)];
    });
    MergeTable table;
    table.reserve(4 * order.size());
    uint32_t rank = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      const int32_t id = order[i];
      if (i != 0 && file_.scores[size_t(id)] < file_.scores[size_t(order[i - 1])]) ++rank;
      const std::string_view token = file_.tokens[size_t(id)];
      for (size_t cut = 0; cut < token.size();) {
        cut += character_at(token, cut).size;
        const auto left = vocabulary_.find(token.substr(0, cut));
        const auto right = vocabulary_.find(token.substr(cut));
        if (!left || !right || !mergeable(*left) || !mergeable(*right)) continue;
        table.set(*left, *right, {rank, id});
      }
    }
    return table;
  }

  bool mergeable(int32_t id) const {
    const int32_t t = type(size_t(id));
    return t == normal || t == user_defined;
  }

  GgufVocabulary file_;
  Vocabulary vocabulary_;
  std::vector<AddedToken> added_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_gguf_tokenizer(GgufVocabulary vocabulary) {
  const std::string model = vocabulary.model, file = vocabulary.file;
  if (model != "gpt2" && model != "llama") {
    fail(Fault::bad_file, "{}: tokenizer.ggml.model: \"{}\" is not supported; known: gpt2, llama",
         file, model);
  }
  Builder builder(std::move(vocabulary));
  return model == "gpt2" ? builder.byte_level() : builder.sentencepiece();
}

}  // namespace hydrant::text
