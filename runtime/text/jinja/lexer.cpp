#include "runtime/text/jinja/lexer.hpp"

#include <cctype>

#include "runtime/base/error.hpp"

namespace hydrant::text::jinja {
namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_name_start(char c) { return std::isalpha(uint8_t(c)) || c == '_'; }
bool is_name(char c) { return std::isalnum(uint8_t(c)) || c == '_'; }

void strip_end(std::string& text) {
  while (!text.empty() && is_space(text.back())) text.pop_back();
}

class Lexer {
 public:
  Lexer(std::string_view source, const std::string& where) : in_(source), where_(where) {
    if (in_.ends_with('\n')) in_.remove_suffix(1);  // keep_trailing_newline is off
  }

  std::vector<Segment> run() {
    while (at_ < in_.size()) {
      const size_t open = next_tag();
      std::string text(in_.substr(at_, open - at_));
      at_ = open;
      if (open < in_.size()) trim_before(text);
      if (!text.empty()) out_.push_back({Segment::Kind::text, std::move(text), {}});
      if (open < in_.size()) tag();
    }
    return std::move(out_);
  }

 private:
  size_t next_tag() const {
    for (size_t i = in_.find('{', at_); i != std::string_view::npos; i = in_.find('{', i + 1)) {
      const char second = i + 1 < in_.size() ? in_[i + 1] : '\0';
      if (second == '{' || second == '%' || second == '#') return i;
    }
    return in_.size();
  }

  // {%- strips all white space before it, {%+ none; else that of its own line, if nothing else is
  // in front of it there.
  void trim_before(std::string& text) const {
    const char kind = in_[at_ + 1], sign = at_ + 2 < in_.size() ? in_[at_ + 2] : '\0';
    if (sign == '-') return strip_end(text);
    if (kind == '{' || sign == '+') return;
    size_t line = text.size();
    while (line > 0 && (text[line - 1] == ' ' || text[line - 1] == '\t')) --line;
    const bool at_line_start = line > 0 ? text[line - 1] == '\n' : at_line_start_;
    if (at_line_start) text.resize(line);
  }

  void tag() {
    const char kind = in_[at_ + 1];
    at_ += 2;
    if (at_ < in_.size() && (in_[at_] == '-' || in_[at_] == '+')) ++at_;
    if (kind == '#') {
      const size_t end = in_.find("#}", at_);
      if (end == std::string_view::npos) error("a comment that does not end");
      const bool strips = in_[end - 1] == '-';
      at_ = end + 2;
      trim_after(strips, true);
      return;
    }
    Segment segment{kind == '{' ? Segment::Kind::output : Segment::Kind::statement, {}, {}};
    const std::string_view closing = kind == '{' ? "}}" : "%}";
    int depth = 0;  // of brackets: "}}" within them closes two dictionaries
    while (true) {
      while (at_ < in_.size() && is_space(in_[at_])) ++at_;
      if (at_ >= in_.size()) error("a tag that does not end");
      const std::string_view rest = in_.substr(at_);
      const bool signed_end =
          (rest[0] == '-' || rest[0] == '+') && rest.substr(1).starts_with(closing);
      if (depth == 0 && (signed_end || rest.starts_with(closing))) {
        at_ += closing.size() + (signed_end ? 1 : 0);
        segment.tokens.emplace_back();
        out_.push_back(std::move(segment));
        trim_after(rest[0] == '-', kind == '%' && rest[0] != '+');
        return;
      }
      segment.tokens.push_back(token());
      if (segment.tokens.back().kind != Token::Kind::symbol) continue;
      const char c = segment.tokens.back().text[0];
      depth += c == '(' || c == '[' || c == '{';
      depth -= c == ')' || c == ']' || c == '}';
    }
  }

  void trim_after(bool all, bool newline) {
    at_line_start_ = false;
    if (all) {
      while (at_ < in_.size() && is_space(in_[at_])) ++at_;
    } else if (newline && at_ < in_.size() && in_[at_] == '\n') {
      ++at_;
      at_line_start_ = true;
    }
  }

  Token token() {
    const char c = in_[at_];
    const size_t from = at_;
    if (is_name_start(c)) {
      while (at_ < in_.size() && is_name(in_[at_])) ++at_;
      return {Token::Kind::name, std::string(in_.substr(from, at_ - from))};
    }
    if (std::isdigit(uint8_t(c))) {
      while (at_ < in_.size() && std::isdigit(uint8_t(in_[at_]))) ++at_;
      if (at_ - from > 9) error("a number of more than nine digits");
      return {Token::Kind::integer, std::string(in_.substr(from, at_ - from))};
    }
    if (c == '\'' || c == '"') return {Token::Kind::string, quoted()};
    for (const std::string_view symbol : {"==", "!=", "<=", ">=", "//", "**"}) {
      if (in_.substr(at_, 2) == symbol) {
        at_ += 2;
        return {Token::Kind::symbol, std::string(symbol)};
      }
    }
    if (std::string_view("()[]{}.,:|+-*/%<>=~").find(c) == std::string_view::npos) {
      error(fmt::format("the character \"{}\"", c));
    }
    ++at_;
    return {Token::Kind::symbol, std::string(1, c)};
  }

  std::string quoted() {
    const char quote = in_[at_++];
    std::string out;
    while (at_ < in_.size() && in_[at_] != quote) {
      char c = in_[at_++];
      if (c == '\\' && at_ < in_.size()) {
        c = in_[at_++];
        switch (c) {
          case 'n':
            c = '\n';
            break;
          case 't':
            c = '\t';
            break;
          case 'r':
            c = '\r';
            break;
          case '\\':
          case '\'':
          case '"':
            break;
          default:
            error(fmt::format("the escape \\{}", c));
        }
      }
      out += c;
    }
    if (at_ >= in_.size()) error("a string that does not end");
    ++at_;
    return out;
  }

  [[noreturn]] void error(std::string_view what) const {
    fail(Fault::bad_file, "{}: the chat template has {} that is not understood, at byte {}", where_,
         what, at_);
  }

  std::string_view in_;
  const std::string& where_;
  std::vector<Segment> out_;
  size_t at_ = 0;
  bool at_line_start_ = true;
};

}  // namespace

std::vector<Segment> cut(std::string_view source, const std::string& where) {
  return Lexer(source, where).run();
}

}  // namespace hydrant::text::jinja
