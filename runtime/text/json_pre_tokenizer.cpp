#include "runtime/base/error.hpp"
#include "runtime/text/json_parts.hpp"
#include "runtime/text/unicode.hpp"

namespace hydrant::text {
namespace {

Behavior read_behavior(const JsonView& json) {
  const std::string name = json.string();
  if (name == "Removed") return Behavior::removed;
  if (name == "Isolated") return Behavior::isolated;
  if (name == "MergedWithPrevious") return Behavior::merged_with_previous;
  if (name == "MergedWithNext") return Behavior::merged_with_next;
  if (name == "Contiguous") return Behavior::contiguous;
  json.fail(fmt::format("unknown behavior \"{}\"", name));
}

void read_metaspace(PreTokenizer& out, const JsonView& json) {
  const std::string mark = read_character(json.member("replacement"));
  std::string scheme = json.member("prepend_scheme").optional_string().value_or("always");
  if (!json.member("add_prefix_space").boolean(true)) scheme = "never";  // the older spelling
  if (scheme != "always" && scheme != "first" && scheme != "never") {
    json.member("prepend_scheme").fail(fmt::format("unknown scheme \"{}\"", scheme));
  }
  out.add(Replace{std::string(" "), mark});
  if (scheme != "never") out.add(Lead{mark, scheme == "first"});
  if (json.member("split").boolean(true)) out.add(Split{mark, Behavior::merged_with_next, false});
}

void read_byte_level(PreTokenizer& out, const JsonView& json) {
  if (json.member("add_prefix_space").boolean(true)) out.add(Lead{" ", false});
  if (json.member("use_regex").boolean(true)) {
    out.add(Split{gpt2_words(), Behavior::isolated, false});
  }
  out.set_byte_level();
}

void read_into(PreTokenizer& out, const JsonView& json) {
  const std::string type = json.member("type").string();
  if (out.byte_level()) json.fail("a step after ByteLevel is not supported");
  if (type == "Sequence") {
    json.member("pretokenizers").for_each([&](const JsonView& part) { read_into(out, part); });
  } else if (type == "ByteLevel") {
    read_byte_level(out, json);
  } else if (type == "Metaspace") {
    read_metaspace(out, json);
  } else if (type == "Split") {
    out.add(Split{read_pattern(json.member("pattern")), read_behavior(json.member("behavior")),
                  json.member("invert").boolean(false)});
  } else if (type == "Digits") {
    const bool each = json.member("individual_digits").boolean(false);
    out.add(Split{&is_numeric, each ? Behavior::isolated : Behavior::contiguous, false});
  } else if (type == "Punctuation") {
    const JsonView behavior = json.member("behavior");
    out.add(Split{&is_punctuation,
                  behavior.is_null() ? Behavior::isolated : read_behavior(behavior), false});
  } else if (type == "Whitespace") {
    // Its \w is that of Rust's regex crate, which counts the joiners.
    const std::string expression = "[\\w\\x{200C}\\x{200D}]+|[^\\w\\x{200C}\\x{200D}\\s]+";
    out.add(Split{Regex(expression, json.where()), Behavior::removed, true});
  } else if (type == "WhitespaceSplit") {
    out.add(Split{&is_white_space, Behavior::removed, false});
  } else if (type == "CharDelimiterSplit") {
    out.add(Split{read_character(json.member("delimiter")), Behavior::removed, false});
  } else {
    refuse_type(json,
                "ByteLevel, CharDelimiterSplit, Digits, Metaspace, Punctuation, Sequence, Split, "
                "Whitespace, WhitespaceSplit");
  }
}

}  // namespace

PreTokenizer read_pre_tokenizer(const JsonView& json) {
  PreTokenizer out;
  if (!json.is_null()) read_into(out, json);
  return out;
}

Pattern gpt2_words() {
  return Regex("'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
               "GPT-2's expression");
}

}  // namespace hydrant::text
