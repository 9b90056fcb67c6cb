#include "runtime/base/error.hpp"
#include "runtime/text/json_parts.hpp"

namespace hydrant::text {
namespace {

// Steps on single tokens come first, then at most one that makes bytes, then steps on the joined
// text. Only such an order can be decoded token by token.
class Reader {
 public:
  Decoder run(const JsonView& json) {
    if (json.is_null()) {
      out_.joined_by_spaces = true;
    } else {
      step(json);
    }
    return std::move(out_);
  }

 private:
  void step(const JsonView& json) {
    const std::string type = json.member("type").string();
    if (type == "Sequence") {
      json.member("decoders").for_each([&](const JsonView& part) { step(part); });
    } else if (type == "Fuse") {
      joined_ = true;
    } else if (type == "ByteLevel") {
      set_bytes(json, Decoder::Bytes::letters);
      joined_ = true;
    } else if (type == "ByteFallback") {
      set_bytes(json, Decoder::Bytes::fallback);
    } else if (type == "Strip") {
      strip(json);
    } else if (type == "Replace") {
      on_token(json);
      out_.steps.push_back(
          Replace{read_pattern(json.member("pattern")), json.member("content").string()});
    } else if (type == "Metaspace") {
      on_token(json);
      const bool never = json.member("prepend_scheme").optional_string() == "never" ||
                         !json.member("add_prefix_space").boolean(true);
      out_.steps.push_back(MarkToSpace{read_character(json.member("replacement")), !never});
    } else {
      refuse_type(json, "ByteFallback, ByteLevel, Fuse, Metaspace, Replace, Sequence, Strip");
    }
  }

  void on_token(const JsonView& json) const {
    if (joined_ || out_.bytes != Decoder::Bytes::plain) {
      json.fail("is not supported after ByteFallback, ByteLevel or Fuse");
    }
  }

  void set_bytes(const JsonView& json, Decoder::Bytes bytes) {
    on_token(json);
    out_.bytes = bytes;
  }

  void strip(const JsonView& json) {
    const std::string character = read_character(json.member("content"));
    const size_t start = size_t(json.member("start").integer(0, kMostStripped));
    const size_t stop = size_t(json.member("stop").integer(0, kMostStripped));
    if (!joined_) {
      on_token(json);
      out_.steps.push_back(StripCharacter{character, start, stop});
      return;
    }
    if (start > 1 || stop != 0 || !out_.dropped_at_start.empty()) {
      json.fail("of a joined text is supported for one character at its start");
    }
    if (start == 1) out_.dropped_at_start = character;
  }

  static constexpr int64_t kMostStripped = 1 << 20;

  Decoder out_;
  bool joined_ = false;
};

}  // namespace

Decoder read_decoder(const JsonView& json) { return Reader().run(json); }

}  // namespace hydrant::text
