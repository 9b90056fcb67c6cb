#include "runtime/base/error.hpp"
#include "runtime/text/json_parts.hpp"

namespace hydrant::text {
namespace {

constexpr size_t kMostIds = 64;  // around a text; a file with more is damaged

int32_t read_id(const JsonView& json) { return int32_t(json.integer(0, kHighestId)); }

std::vector<int32_t> read_template_token(const JsonView& json, const JsonView& known) {
  const std::string name = json.member("id").string();
  const JsonView token = known.member(name);
  if (token.is_null()) {
    json.member("id").fail(fmt::format("\"{}\" is not among the special_tokens", name));
  }
  std::vector<int32_t> ids;
  token.member("ids").for_each([&](const JsonView& id) { ids.push_back(read_id(id)); });
  return ids;
}

Frame read_template(const JsonView& json) {
  Frame frame;
  bool seen = false;
  json.member("single").for_each([&](const JsonView& piece) {
    const JsonView sequence = piece.member("Sequence"), token = piece.member("SpecialToken");
    if (!sequence.is_null()) {
      if (seen || sequence.member("id").string() != "A") {
        sequence.fail("expected the sequence A once");
      }
      seen = true;
    } else if (!token.is_null()) {
      std::vector<int32_t>& to = seen ? frame.after : frame.before;
      for (const int32_t id : read_template_token(token, json.member("special_tokens"))) {
        to.push_back(id);
        if (to.size() > kMostIds) json.fail(fmt::format("more than {} ids", kMostIds));
      }
    } else {
      piece.fail("expected a Sequence or a SpecialToken");
    }
  });
  if (!seen) json.member("single").fail("expected the sequence A once");
  return frame;
}

// "cls": ["</s>", 2]
int32_t read_pair(const JsonView& json) {
  if (json.elements() != 2) json.fail("expected a token and its id");
  return read_id(json.element(1));
}

void read_into(Frame& out, const JsonView& json) {
  const std::string type = json.member("type").string();
  Frame frame;
  if (type == "Sequence") {
    json.member("processors").for_each([&](const JsonView& part) { read_into(out, part); });
  } else if (type == "TemplateProcessing") {
    frame = read_template(json);
  } else if (type == "RobertaProcessing" || type == "BertProcessing") {
    frame = {{read_pair(json.member("cls"))}, {read_pair(json.member("sep"))}};
  } else if (type != "ByteLevel") {  // that one only moves offsets
    refuse_type(json, "BertProcessing, ByteLevel, RobertaProcessing, Sequence, TemplateProcessing");
  }
  out.before.insert(out.before.begin(), frame.before.begin(), frame.before.end());
  out.after.insert(out.after.end(), frame.after.begin(), frame.after.end());
  if (out.before.size() + out.after.size() > 2 * kMostIds) {
    json.fail(fmt::format("more than {} ids", 2 * kMostIds));
  }
}

}  // namespace

Frame read_post_processor(const JsonView& json) {
  Frame out;
  if (!json.is_null()) read_into(out, json);
  return out;
}

}  // namespace hydrant::text
