#include <algorithm>
#include <filesystem>

#include "runtime/base/error.hpp"
#include "runtime/base/file.hpp"
#include "runtime/base/json.hpp"
#include "runtime/base/log.hpp"
#include "runtime/text/json_parts.hpp"
#include "runtime/text/pipeline.hpp"
#include "runtime/text/tokenizer_file.hpp"

namespace hydrant::text {
namespace {

constexpr size_t kLongestAdded = 4096;

MergeTable read_merges(const TokenizerFile& file, size_t prefix) {
  MergeTable table;
  table.reserve(file.merges.count());
  std::string joined;
  for (size_t i = 0; i < file.merges.count(); ++i) {
    const std::string_view left = file.merges.left(i), right = file.merges.right(i);
    joined = left;
    joined += right.substr(std::min(prefix, right.size()));
    const auto id = [&](std::string_view token) {
      const auto found = file.vocabulary.find(token);
      if (!found) {
        fail(Fault::bad_file, "{}: model.merges[{}]: \"{}\" is not in the vocabulary", file.path, i,
             token);
      }
      return *found;
    };
    const int32_t left_id = id(left), right_id = id(right);
    table.set(left_id, right_id, {uint32_t(i), id(joined)});
  }
  return table;
}

Bpe read_model(TokenizerFile& file, const JsonView& json, const std::vector<AddedToken>& added) {
  const std::string type = json.member("type").optional_string().value_or("BPE");
  if (type != "BPE") refuse_type(json, "BPE");
  if (!file.has_vocabulary) json.member("vocab").fail("expected an object of tokens and ids");
  if (!file.has_merges) json.member("merges").fail("expected an array of merges");
  const JsonView dropout = json.member("dropout");
  if (!dropout.is_null()) dropout.fail("dropout is for training; expected null");

  BpeOptions options;
  options.prefix = json.member("continuing_subword_prefix").optional_string().value_or("");
  options.suffix = json.member("end_of_word_suffix").optional_string().value_or("");
  options.fuse_unknown = json.member("fuse_unk").boolean(false);
  options.byte_fallback = json.member("byte_fallback").boolean(false);
  options.ignore_merges = json.member("ignore_merges").boolean(false);
  if (const auto unknown = json.member("unk_token").optional_string()) {
    options.unknown = file.vocabulary.find(*unknown);
    for (const AddedToken& token : added) {
      if (!options.unknown && token.content == *unknown) options.unknown = token.id;
    }
    if (!options.unknown) {
      json.member("unk_token").fail(fmt::format("\"{}\" is not in the vocabulary", *unknown));
    }
  }
  MergeTable merges = read_merges(file, options.prefix.size());
  return Bpe(std::move(file.vocabulary), std::move(merges), std::move(options));
}

// Hugging Face gives a token that the model does not have the next free id, whatever the file says.
int32_t next_id(const std::vector<AddedToken>& added, const Vocabulary& vocabulary) {
  int32_t highest = -1;
  for (const AddedToken& token : added) highest = std::max(highest, token.id);
  return std::max(highest + 1, int32_t(vocabulary.count()));
}

std::vector<AddedToken> read_added(const JsonView& json, const Vocabulary& vocabulary) {
  std::vector<AddedToken> added;
  if (json.is_null()) return added;
  std::unordered_map<std::string, size_t> known;
  int32_t next = -1;
  json.for_each([&](const JsonView& entry) {
    AddedToken token;
    token.content = entry.member("content").string();
    token.special = entry.member("special").boolean(false);
    token.single_word = entry.member("single_word").boolean(false);
    token.lstrip = entry.member("lstrip").boolean(false);
    token.rstrip = entry.member("rstrip").boolean(false);
    token.normalized = entry.member("normalized").boolean(!token.special);
    const int64_t stated = entry.member("id").integer(0, kHighestId);
    if (token.content.size() > kLongestAdded) {
      entry.member("content").fail(
          fmt::format("{} bytes, the longest allowed are {}", token.content.size(), kLongestAdded));
    }
    if (token.content.empty()) return;
    const auto [at, is_new] = known.try_emplace(token.content, added.size());
    if (!is_new) {
      AddedToken& old = added[at->second];
      token.id = old.id;
      token.special = token.special || old.special;
      old = token;
      return;
    }
    if (next < 0) next = next_id(added, vocabulary);
    const auto of_model = vocabulary.find(token.content);
    token.id = of_model ? *of_model : next;
    if (token.id > kHighestId) entry.fail("has no id left");
    next = std::max(token.id + 1, next);
    if (token.id != stated) {
      log::warning("{}: the added token \"{}\" has the id {}, not {} as the file says",
                   entry.where(), token.content, token.id, stated);
    }
    added.push_back(std::move(token));
  });
  return added;
}

// tokenizer_config.json says again whether a text begins with BOS and ends with EOS, and is obeyed
// where it does: OPT's tokenizer.json may come without its BOS.
class Switches {
 public:
  explicit Switches(const std::string& folder)
      : path_((std::filesystem::path(folder) / "tokenizer_config.json").string()) {
    std::error_code ignored;
    if (!std::filesystem::exists(path_, ignored)) return;
    config_ = parse_json(read_text(path_), path_);
  }

  void apply(Frame& frame, const std::function<std::optional<int32_t>(std::string_view)>& id_of) {
    const auto bos = wanted("add_bos_token", "bos_token", id_of);
    if (bos) {
      const bool there = !frame.before.empty() && frame.before.front() == bos->id;
      if (bos->on && !there) frame.before.insert(frame.before.begin(), bos->id);
      if (!bos->on && there) frame.before.erase(frame.before.begin());
    }
    const auto eos = wanted("add_eos_token", "eos_token", id_of);
    if (eos) {
      const bool there = !frame.after.empty() && frame.after.back() == eos->id;
      if (eos->on && !there) frame.after.push_back(eos->id);
      if (!eos->on && there) frame.after.pop_back();
    }
  }

 private:
  struct Wanted {
    bool on;
    int32_t id;
  };
  std::optional<Wanted> wanted(
      std::string_view flag, std::string_view name,
      const std::function<std::optional<int32_t>(std::string_view)>& id_of) const {
    if (config_.is_null()) return std::nullopt;
    const JsonView json(config_, path_, "");
    if (json.member(flag).is_null()) return std::nullopt;
    const bool on = json.member(flag).boolean();
    const JsonView token = json.member(name);
    if (token.is_null()) {
      if (on) token.fail(fmt::format("is missing, though {} is true", flag));
      return std::nullopt;
    }
    const std::string text = token.is_object() ? token.member("content").string() : token.string();
    const auto id = id_of(text);
    if (!id && on) token.fail(fmt::format("\"{}\" is not in the vocabulary", text));
    if (!id) return std::nullopt;
    return Wanted{on, *id};
  }

  std::string path_;
  Json config_;
};

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer_json(const std::string& path) {
  TokenizerFile file = read_tokenizer_file(path);
  const JsonView json(*file.rest, path, "");
  std::vector<AddedToken> added = read_added(json.member("added_tokens"), file.vocabulary);
  Frame frame = read_post_processor(json.member("post_processor"));
  Switches(std::filesystem::path(path).parent_path().string())
      .apply(frame, [&](std::string_view token) -> std::optional<int32_t> {
        for (const AddedToken& a : added) {
          if (a.content == token) return a.id;
        }
        return file.vocabulary.find(token);
      });
  return std::make_unique<Pipeline>(Pipeline::Parts{
      read_normalizer(json.member("normalizer")), read_pre_tokenizer(json.member("pre_tokenizer")),
      read_model(file, json.member("model"), added), read_decoder(json.member("decoder")),
      std::move(frame), std::move(added)});
}

}  // namespace hydrant::text
