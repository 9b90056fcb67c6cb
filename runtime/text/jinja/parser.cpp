#include <initializer_list>
#include <optional>

#include "runtime/base/error.hpp"
#include "runtime/base/json.hpp"
#include "runtime/text/jinja/lexer.hpp"
#include "runtime/text/jinja/syntax.hpp"

namespace hydrant::text::jinja {
namespace {

using Kind = Expression::Kind;
constexpr int kDeepest = 64;

template <class... Parts>
ExpressionPtr make(Kind kind, std::string name, Parts... parts) {
  auto out = std::make_unique<Expression>();
  out->kind = kind;
  out->name = std::move(name);
  (out->parts.push_back(std::move(parts)), ...);
  return out;
}

ExpressionPtr literal(nlohmann::json value) {
  auto out = make(Kind::literal, "");
  out->value = std::make_shared<nlohmann::json>(std::move(value));
  return out;
}

class Parser {
 public:
  Parser(std::string_view source, const std::string& where)
      : segments_(cut(source, where)), where_(where) {}

  std::vector<Node> run() {
    std::vector<Node> out = nodes({});
    if (segment_ < segments_.size()) error("the end of a block that was not begun");
    return out;
  }

 private:
  // Up to a statement that begins with one of `ends`, which stays the current one.
  std::vector<Node> nodes(std::initializer_list<std::string_view> ends) {
    const Nested nested(*this);
    std::vector<Node> out;
    for (; segment_ < segments_.size(); ++segment_) {
      Segment& s = segments_[segment_];
      token_ = 0;
      if (s.kind == Segment::Kind::text) {
        out.push_back({Node::Kind::text, std::move(s.text), {}, {}, {}, {}, {}});
      } else if (s.kind == Segment::Kind::output) {
        Node node{Node::Kind::output, {}, expression(), {}, {}, {}, {}};
        finish();
        out.push_back(std::move(node));
      } else {
        const std::string keyword = name();
        for (const std::string_view end : ends) {
          if (keyword == end) return out;
        }
        out.push_back(statement(keyword));
      }
    }
    if (ends.size() != 0) error("a block without its end");
    return out;
  }

  Node statement(const std::string& keyword) {
    if (keyword == "if") return branch();
    if (keyword == "for") return loop();
    if (keyword == "set") return assign();
    error(fmt::format("the statement \"{}\"", keyword));
  }

  Node branch() {
    Node node{Node::Kind::branch, {}, expression(), {}, {}, {}, {}};
    finish();
    ++segment_;
    node.body = nodes({"elif", "else", "endif"});
    const std::string keyword = current_keyword();
    if (keyword == "elif") {
      const Nested nested(*this);
      node.otherwise.push_back(branch());  // consumes the endif
      return node;
    }
    finish();
    if (keyword == "else") {
      ++segment_;
      node.otherwise = nodes({"endif"});
      finish();
    }
    return node;
  }

  Node loop() {
    Node node{Node::Kind::loop, {}, {}, {}, {}, {}, {}};
    do {
      node.targets.push_back(name());
    } while (take(","));
    if (!take("in")) error("a loop without \"in\"");
    node.expression = disjunction();
    if (take("if")) node.condition = expression();
    finish();
    ++segment_;
    node.body = nodes({"else", "endfor"});
    const bool otherwise = current_keyword() == "else";
    finish();
    if (otherwise) {
      ++segment_;
      node.otherwise = nodes({"endfor"});
      finish();
    }
    return node;
  }

  Node assign() {
    Node node{Node::Kind::assign, {}, {}, {}, {}, {}, {}};
    node.targets.push_back(name());
    if (take(".")) node.targets.push_back(name());
    if (!take("=")) error("an assignment without \"=\"");
    node.expression = expression();
    finish();
    return node;
  }

  // From the loosest binding to the tightest.
  ExpressionPtr expression() {
    const Nested nested(*this);
    ExpressionPtr left = disjunction();
    if (!take("if")) return left;
    ExpressionPtr condition = disjunction();
    ExpressionPtr otherwise = take("else") ? expression() : nullptr;
    return make(Kind::conditional, "", std::move(left), std::move(condition), std::move(otherwise));
  }

  ExpressionPtr disjunction() { return chain({"or"}, &Parser::conjunction); }
  ExpressionPtr conjunction() { return chain({"and"}, &Parser::negation); }

  ExpressionPtr negation() {
    if (!take("not")) return comparison();
    const Nested nested(*this);
    return make(Kind::negation, "", negation());
  }

  ExpressionPtr comparison() {
    ExpressionPtr left = sum();
    while (true) {
      if (const auto op = take_any({"==", "!=", "<=", ">=", "<", ">", "in"})) {
        left = make(Kind::binary, *op, std::move(left), sum());
      } else if (peek("not") && peek("in", 1)) {
        token_ += 2;
        left = make(Kind::negation, "", make(Kind::binary, "in", std::move(left), sum()));
      } else {
        return left;
      }
    }
  }

  ExpressionPtr sum() { return chain({"+", "-", "~"}, &Parser::product); }
  ExpressionPtr product() { return chain({"*", "//", "/", "%"}, &Parser::unary); }

  ExpressionPtr chain(std::initializer_list<std::string_view> operators,
                      ExpressionPtr (Parser::*operand)()) {
    ExpressionPtr left = (this->*operand)();
    while (const auto op = take_any(operators)) {
      left = make(Kind::binary, *op, std::move(left), (this->*operand)());
    }
    return left;
  }

  ExpressionPtr unary() {
    const Nested nested(*this);
    if (take("-")) return make(Kind::minus, "", unary());
    return postfix(primary());
  }

  ExpressionPtr primary() {
    const Token token = current();
    ++token_;
    switch (token.kind) {
      case Token::Kind::string: {
        std::string text = token.text;  // neighbouring strings are one
        while (current().kind == Token::Kind::string) {
          text += current().text;
          ++token_;
        }
        return literal(std::move(text));
      }
      case Token::Kind::integer:
        return literal(std::stoi(token.text));
      case Token::Kind::name:
        if (token.text == "true" || token.text == "True") return literal(true);
        if (token.text == "false" || token.text == "False") return literal(false);
        if (token.text == "none" || token.text == "None") return literal(nullptr);
        return make(Kind::variable, token.text);
      case Token::Kind::symbol:
        if (token.text == "(") {
          ExpressionPtr inner = expression();
          need(")");
          return inner;
        }
        if (token.text == "[") {
          ExpressionPtr list = make(Kind::list, "");
          while (!take("]")) {
            list->parts.push_back(expression());
            if (!take(",") && !peek("]")) error("a list");
          }
          return list;
        }
        if (token.text == "{") return dict();
        break;
      case Token::Kind::end:
        break;
    }
    error(fmt::format("\"{}\"", token.text));
  }

  ExpressionPtr dict() {
    ExpressionPtr out = make(Kind::dict, "");
    while (!take("}")) {
      out->parts.push_back(expression());
      need(":");
      out->parts.push_back(expression());
      if (!take(",") && !peek("}")) error("a dictionary");
    }
    return out;
  }

  ExpressionPtr postfix(ExpressionPtr of) {
    int length = 0;
    while (true) {
      if (++length > kDeepest) error("a chain that is too long");
      if (take(".")) {
        of = make(Kind::attribute, name(), std::move(of));
      } else if (take("[")) {
        of = subscript(std::move(of));
      } else if (take("(")) {
        of = make(Kind::call, "", std::move(of));
        arguments(*of);
      } else if (take("|")) {
        of = make(Kind::filter, name(), std::move(of));
        if (take("(")) arguments(*of);
      } else if (take("is")) {
        const bool negated = take("not");
        of = make(Kind::test, name(), std::move(of));
        if (take("(")) {
          arguments(*of);
        } else if (current().kind == Token::Kind::string || peek("[")) {
          of->parts.push_back(primary());
        }
        if (negated) of = make(Kind::negation, "", std::move(of));
      } else {
        return of;
      }
    }
  }

  ExpressionPtr subscript(ExpressionPtr of) {
    ExpressionPtr first = peek(":") ? nullptr : expression();
    if (!take(":")) {
      need("]");
      return make(Kind::item, "", std::move(of), std::move(first));
    }
    ExpressionPtr last = peek("]") ? nullptr : expression();
    need("]");
    return make(Kind::slice, "", std::move(of), std::move(first), std::move(last));
  }

  void arguments(Expression& of) {
    while (!take(")")) {
      if (current().kind == Token::Kind::name && peek("=", 1)) {
        of.keywords.push_back(name());
        need("=");
      }
      of.parts.push_back(expression());
      if (!take(",") && !peek(")")) error("arguments");
    }
  }

  const Token& current(size_t ahead = 0) const {
    const std::vector<Token>& tokens = segments_[segment_].tokens;
    return tokens[std::min(token_ + ahead, tokens.size() - 1)];
  }
  std::string current_keyword() const { return segments_[segment_].tokens.front().text; }
  bool peek(std::string_view text, size_t ahead = 0) const {
    const Token& token = current(ahead);
    const bool word = token.kind == Token::Kind::symbol || token.kind == Token::Kind::name;
    return word && token.text == text;
  }
  bool take(std::string_view text) {
    if (!peek(text)) return false;
    ++token_;
    return true;
  }
  std::optional<std::string> take_any(std::initializer_list<std::string_view> texts) {
    for (const std::string_view text : texts) {
      if (take(text)) return std::string(text);
    }
    return std::nullopt;
  }
  void need(std::string_view text) {
    if (!take(text)) error(fmt::format("\"{}\" where \"{}\" should be", current().text, text));
  }
  void finish() {
    if (current().kind != Token::Kind::end) error(fmt::format("\"{}\"", current().text));
  }
  std::string name() {
    const Token token = current();
    if (token.kind != Token::Kind::name) error(fmt::format("\"{}\"", token.text));
    ++token_;
    return token.text;
  }

  // Recursion follows the file's nesting, so it has a limit.
  class Nested {
   public:
    explicit Nested(Parser& parser) : parser_(parser) {
      if (++parser_.depth_ > kDeepest) parser_.error("nesting that is too deep");
    }
    ~Nested() { --parser_.depth_; }

   private:
    Parser& parser_;
  };

  [[noreturn]] void error(std::string_view what) const {
    fail(Fault::bad_file, "{}: the chat template has {}, which is not understood, in its part {}",
         where_, what, segment_);
  }

  std::vector<Segment> segments_;
  const std::string& where_;
  size_t segment_ = 0, token_ = 0;
  int depth_ = 0;
};

}  // namespace

std::vector<Node> parse(std::string_view source, const std::string& where) {
  return Parser(source, where).run();
}

}  // namespace hydrant::text::jinja
