// The part of the Jinja language that chat templates use, as a tree.
#pragma once
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace hydrant::text::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct Expression {
  enum class Kind {
    literal,      // value
    variable,     // name
    list,         // parts...
    dict,         // key, value, key, value, ...
    attribute,    // parts[0].name
    item,         // parts[0][parts[1]]
    slice,        // parts[0][parts[1]:parts[2]]; either may be null
    call,         // parts[0](parts[1], ...), the last ones named by `keywords`
    filter,       // parts[0] | name(parts[1], ...), likewise
    test,         // parts[0] is name(parts[1], ...)
    negation,     // not parts[0]
    minus,        // -parts[0]
    binary,       // parts[0] name parts[1]
    conditional,  // parts[0] if parts[1] else parts[2]; that may be null
  };
  Kind kind;
  std::string name;
  std::shared_ptr<const nlohmann::json> value;
  std::vector<ExpressionPtr> parts;
  std::vector<std::string> keywords;
};

struct Node {
  enum class Kind {
    text,    // name
    output,  // {{ expression }}
    branch,  // {% if expression %} body {% else %} otherwise
    loop,    // {% for targets in expression if condition %} body {% else %} otherwise
    assign,  // {% set targets = expression %}
  };
  Kind kind;
  std::string text;
  ExpressionPtr expression, condition;
  std::vector<std::string> targets;
  std::vector<Node> body, otherwise;
};

// Reads a template as Hugging Face does (trim_blocks, lstrip_blocks). Throws bad_file, beginning
// with `where`, for a syntax error and for statements outside of the above.
std::vector<Node> parse(std::string_view source, const std::string& where);

}  // namespace hydrant::text::jinja
