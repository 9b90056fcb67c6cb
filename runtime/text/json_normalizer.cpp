#include "runtime/base/error.hpp"
#include "runtime/text/json_parts.hpp"
#include "runtime/text/utf8.hpp"

namespace hydrant::text {
namespace {

void read_into(Normalizer& out, const JsonView& json) {
  const std::string type = json.member("type").string();
  if (type == "Sequence") {
    json.member("normalizers").for_each([&](const JsonView& part) { read_into(out, part); });
  } else if (type == "NFC") {
    out.add(NormalForm::nfc);
  } else if (type == "NFD") {
    out.add(NormalForm::nfd);
  } else if (type == "NFKC") {
    out.add(NormalForm::nfkc);
  } else if (type == "NFKD") {
    out.add(NormalForm::nfkd);
  } else if (type == "Lowercase") {
    out.add(Fold::lower_case);
  } else if (type == "StripAccents") {
    out.add(Fold::without_marks);
  } else if (type == "Replace") {
    out.add(Replace{read_pattern(json.member("pattern")), json.member("content").string()});
  } else if (type == "Prepend") {
    out.add(Prepend{json.member("prepend").string()});
  } else if (type == "Strip") {
    out.add(StripSpace{json.member("strip_left").boolean(), json.member("strip_right").boolean()});
  } else {
    refuse_type(json,
                "Lowercase, NFC, NFD, NFKC, NFKD, Prepend, Replace, Sequence, Strip, StripAccents");
  }
}

}  // namespace

Normalizer read_normalizer(const JsonView& json) {
  Normalizer out;
  if (!json.is_null()) read_into(out, json);
  return out;
}

Pattern read_pattern(const JsonView& json) {
  const JsonView literal = json.member("String"), regex = json.member("Regex");
  if (!literal.is_null()) return literal.string();
  if (!regex.is_null()) return Regex(regex.string(), regex.where());
  json.fail("expected {\"String\": ...} or {\"Regex\": ...}");
}

std::string read_character(const JsonView& json) {
  std::string text = json.string();
  if (text.empty() || character_at(text, 0).size != text.size()) {
    json.fail(fmt::format("expected one character, found \"{}\"", text));
  }
  return text;
}

void refuse_type(const JsonView& json, std::string_view known) {
  const JsonView type = json.member("type");
  type.fail(fmt::format("\"{}\" is not supported; known: {}", type.string(), known));
}

}  // namespace hydrant::text
