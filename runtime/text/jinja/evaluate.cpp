#include "runtime/text/jinja/evaluate.hpp"

#include <ctime>
#include <map>

#include "runtime/base/error.hpp"
#include "runtime/base/json.hpp"
#include "runtime/text/jinja/values.hpp"

namespace hydrant::text::jinja {
namespace {

using Kind = Expression::Kind;
constexpr int kMostSteps = 1'000'000;  // the template is untrusted; a real one takes thousands
constexpr size_t kLongest = size_t{64} << 20;

class Evaluator {
 public:
  Evaluator(const Value& variables, const std::string& where) : where_(where), frames_(1) {
    for (const auto& [name, value] : variables.items()) frames_[0][name] = value;
  }

  std::string run(const std::vector<Node>& nodes) {
    try {
      execute(nodes);
    } catch (const Unsupported& problem) {
      error(problem.what);
    }
    return std::move(out_);
  }

 private:
  void execute(const std::vector<Node>& nodes) {
    for (const Node& node : nodes) {
      step();
      switch (node.kind) {
        case Node::Kind::text:
          print(node.text);
          break;
        case Node::Kind::output:
          print(to_text(value_of(*node.expression)));
          break;
        case Node::Kind::branch:
          execute(is_true(value_of(*node.expression)) ? node.body : node.otherwise);
          break;
        case Node::Kind::loop:
          loop(node);
          break;
        case Node::Kind::assign:
          assign(node);
          break;
      }
    }
  }

  void loop(const Node& node) {
    Value all = value_of(*node.expression);
    if (is_undefined(all)) all = Value::array();
    if (!all.is_array()) error("a loop over something that is no list");
    std::vector<Value> items;
    frames_.emplace_back();
    for (const Value& item : all) {
      bind(node, item);
      if (!node.condition || is_true(value_of(*node.condition))) items.push_back(item);
    }
    for (size_t i = 0; i < items.size(); ++i) {
      frames_.back().clear();  // what an iteration sets ends with it
      bind(node, items[i]);
      frames_.back()["loop"] = {{"index", i + 1},
                                {"index0", i},
                                {"first", i == 0},
                                {"last", i + 1 == items.size()},
                                {"length", items.size()},
                                {"revindex", items.size() - i},
                                {"revindex0", items.size() - i - 1}};
      if (i != 0) frames_.back()["loop"]["previtem"] = items[i - 1];
      if (i + 1 < items.size()) frames_.back()["loop"]["nextitem"] = items[i + 1];
      execute(node.body);
    }
    frames_.pop_back();
    if (items.empty()) execute(node.otherwise);
  }

  void bind(const Node& node, const Value& item) {
    step();
    if (node.targets.size() == 1) {
      frames_.back()[node.targets[0]] = item;
      return;
    }
    if (!item.is_array() || item.size() != node.targets.size()) error("a loop over unequal lists");
    for (size_t i = 0; i < item.size(); ++i) frames_.back()[node.targets[i]] = item[i];
  }

  void assign(const Node& node) {
    Value value = value_of(*node.expression);
    if (node.targets.size() == 1) {
      frames_.back()[node.targets[0]] = std::move(value);
      return;
    }
    Value* const space = find(node.targets[0]);  // of namespace(...)
    if (!space || !space->is_object()) error("a member set of something that is no namespace");
    (*space)[node.targets[1]] = std::move(value);
  }

  Value value_of(const Expression& e) {
    step();
    const auto part = [&](size_t i) { return value_of(*e.parts[i]); };
    const auto optional_part = [&](size_t i) { return e.parts[i] ? part(i) : Value(); };
    switch (e.kind) {
      case Kind::literal:
        return *e.value;
      case Kind::variable: {
        const Value* found = find(e.name);
        return found ? *found : undefined();
      }
      case Kind::list: {
        Value out = Value::array();
        for (size_t i = 0; i < e.parts.size(); ++i) out.push_back(part(i));
        return out;
      }
      case Kind::dict: {
        Value out = Value::object();
        for (size_t i = 0; i < e.parts.size(); i += 2) out[to_text(part(i))] = part(i + 1);
        return out;
      }
      case Kind::attribute:
        return member(part(0), e.name);
      case Kind::item:
        return member(part(0), part(1));
      case Kind::slice:
        return slice(part(0), optional_part(1), optional_part(2));
      case Kind::call:
        return call(e);
      case Kind::filter:
        return filter(e.name, part(0), arguments(e));
      case Kind::test:
        return test(e.name, part(0), arguments(e));
      case Kind::negation:
        return !is_true(part(0));
      case Kind::minus:
        return binary("-", 0, part(0));
      case Kind::binary:
        if (e.name == "and" || e.name == "or") {
          Value left = part(0);
          return is_true(left) == (e.name == "or") ? left : part(1);
        }
        return binary(e.name, part(0), part(1));
      case Kind::conditional:
        if (is_true(part(1))) return part(0);
        return e.parts[2] ? part(2) : undefined();
    }
    error("an expression");
  }

  std::vector<Value> arguments(const Expression& e) {
    if (!e.keywords.empty()) error(fmt::format("the argument \"{}\"", e.keywords[0]));
    std::vector<Value> out;
    for (size_t i = 1; i < e.parts.size(); ++i) out.push_back(value_of(*e.parts[i]));
    return out;
  }

  Value call(const Expression& e) {
    const Expression& callee = *e.parts[0];
    if (callee.kind == Kind::attribute) {
      return method(callee.name, value_of(*callee.parts[0]), arguments(e));
    }
    if (callee.kind != Kind::variable) error("a call");
    if (callee.name == "namespace" && e.keywords.size() + 1 == e.parts.size()) {
      Value out = Value::object();
      for (size_t i = 0; i < e.keywords.size(); ++i) out[e.keywords[i]] = value_of(*e.parts[i + 1]);
      return out;
    }
    const std::vector<Value> given = arguments(e);
    if (callee.name == "raise_exception" && given.size() == 1) {
      fail(Fault::bad_input, "{}: the chat template refuses the conversation: {}", where_,
           to_text(given[0]));
    }
    if (callee.name == "strftime_now" && given.size() == 1) return now(to_text(given[0]));
    error(fmt::format("the function \"{}\"", callee.name));
  }

  Value now(const std::string& format) const {
    const std::time_t seconds = std::time(nullptr);
    std::tm local{};
    localtime_r(&seconds, &local);
    char text[256];
    return std::string(text, std::strftime(text, sizeof text, format.c_str(), &local));
  }

  Value* find(const std::string& name) {
    for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame) {
      const auto found = frame->find(name);
      if (found != frame->end()) return &found->second;
    }
    return nullptr;
  }

  void print(std::string_view text) {
    if (text.size() > kLongest - out_.size()) error(fmt::format("more than {} bytes", kLongest));
    out_ += text;
  }

  void step() {
    if (++steps_ > kMostSteps) error(fmt::format("more than {} steps", kMostSteps));
  }

  [[noreturn]] void error(std::string_view what) const {
    fail(Fault::bad_file, "{}: the chat template needs what is not supported: {}", where_, what);
  }

  const std::string& where_;
  std::vector<std::map<std::string, Value>> frames_;  // the innermost loop's last
  std::string out_;
  int steps_ = 0;
};

}  // namespace

std::string render(const std::vector<Node>& nodes, const Value& variables,
                   const std::string& where) {
  return Evaluator(variables, where).run(nodes);
}

}  // namespace hydrant::text::jinja
