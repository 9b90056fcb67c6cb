#include "runtime/text/onigmo.hpp"

#include <optional>
#include <vector>

#include "runtime/base/error.hpp"

namespace hydrant::text {
namespace {

// PCRE2 counts U+180E as space and leaves marks out of \w; these sets are Oniguruma's, which has
// the superscripts and fractions of Latin-1 among the word characters.
constexpr std::string_view kSpace = "\\p{White_Space}", kNotSpace = "\\P{White_Space}";
constexpr std::string_view kWord =
    "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}";
constexpr std::string_view kHex = "0-9A-Fa-f";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

class Translator {
 public:
  Translator(std::string_view pattern, const std::string& where) : in_(pattern), where_(where) {}

  std::string run() {
    while (at_ < in_.size()) step();
    return std::move(out_);
  }

 private:
  // One atom, group bracket, alternative or quantifier. `atom_` is where the last whole atom begins
  // in the output: a quantifier after it may have to bracket it.
  void step() {
    const char c = in_[at_];
    switch (c) {
      case '\\':
        begin_atom();
        escape();
        return;
      case '[':
        begin_atom();
        character_class();
        return;
      case '(':
        open_group();
        return;
      case ')':
        ++at_;
        out_ += ')';
        if (!groups_.empty()) {
          atom_ = groups_.back();
          groups_.pop_back();
        }
        return;
      case '*':
      case '+':
      case '?':
        ++at_;
        out_ += c;
        // In both dialects a second ? makes it lazy and a second + possessive.
        if (at_ < in_.size() && (in_[at_] == '?' || in_[at_] == '+')) out_ += in_[at_++];
        return;
      case '{':
        if (!interval()) {
          begin_atom();
          out_ += "\\{";
          ++at_;
        }
        return;
      case '|':
        ++at_;
        out_ += c;
        atom_.reset();
        return;
      default:
        begin_atom();
        copy_character();
    }
  }

  void begin_atom() { atom_ = out_.size(); }

  void copy_character() {
    out_ += in_[at_++];
    while (at_ < in_.size() && (uint8_t(in_[at_]) & 0xC0) == 0x80) out_ += in_[at_++];
  }

  [[noreturn]] void refuse(std::string_view what) const {
    fail(Fault::bad_file, "{}: \"{}\" in the expression {} is not supported", where_, what, in_);
  }

  // {n}, {n,}, {,m}, {n,m}: a + after it repeats the whole in Ruby (in PCRE2 it is possessive), and
  // a ? after {n} makes it optional (in PCRE2 lazy).
  bool interval() {
    size_t i = at_ + 1;
    const auto number = [&] {
      const size_t from = i;
      while (i < in_.size() && is_digit(in_[i])) ++i;
      return std::string(in_.substr(from, i - from));
    };
    std::string text = number();
    const bool exact = i >= in_.size() || in_[i] != ',';
    if (exact) {
      if (text.empty()) return false;
    } else {
      ++i;
      const std::string most = number();
      if (text.empty() && most.empty()) return false;
      text = (text.empty() ? "0" : text) + "," + most;
    }
    if (i >= in_.size() || in_[i] != '}') return false;
    if (!atom_) refuse(fmt::format("{{{}}} after nothing", text));
    at_ = i + 1;
    out_ += "{" + text + "}";
    const char next = at_ < in_.size() ? in_[at_] : '\0';
    if (next == '+' || (next == '?' && exact)) {
      out_.insert(*atom_, "(?:");
      out_ += ')';
      out_ += next;
      ++at_;
    } else if (next == '?') {
      out_ += next;
      ++at_;
    }
    return true;
  }

  void open_group() {
    const size_t start = out_.size();
    const std::string_view rest = in_.substr(at_);
    const auto take = [&](size_t count, std::string_view text) {
      at_ += count;
      out_ += text;
    };
    if (rest.substr(0, 2) == "(*") refuse("(*");
    if (rest.substr(0, 2) != "(?") {
      take(1, "(?:");  // nothing refers to a captured group
    } else {
      const std::string_view head = rest.substr(2, 2);
      if (head.substr(0, 1) == ":" || head.substr(0, 1) == "=" || head.substr(0, 1) == "!" ||
          head.substr(0, 1) == ">") {
        take(3, rest.substr(0, 3));
      } else if (head == "<=" || head == "<!") {
        take(4, rest.substr(0, 4));
      } else if (head.substr(0, 1) == "<") {
        const size_t end = rest.find('>');
        if (end == std::string_view::npos) refuse("(?<");
        take(end + 1, "(?:");
      } else {
        open_options(rest);
        return;
      }
    }
    groups_.push_back(start);
    atom_.reset();
  }

  // (?i:...), (?mi-x:...) and, at the start of the expression, (?i).
  void open_options(std::string_view rest) {
    size_t i = 2;
    std::string options;
    while (i < rest.size() && (rest[i] == 'i' || rest[i] == 'm' || rest[i] == '-')) {
      options += rest[i] == 'm' ? 's' : rest[i];  // Ruby's "m" lets the dot match a newline
      ++i;
    }
    if (i >= rest.size() || (rest[i] != ':' && rest[i] != ')')) refuse(rest.substr(0, i + 1));
    if (rest[i] == ')' && at_ != 0) refuse(rest.substr(0, i + 1));
    const size_t start = out_.size();
    out_ += "(?" + options + rest[i];
    at_ += i + 1;
    atom_.reset();
    if (rest[i] == ':') groups_.push_back(start);
  }

  // \p{Name}, \P{Name}, \p{^Name}
  void property() {
    const char p = in_[at_];
    const size_t end = in_.find('}', at_);
    if (at_ + 1 >= in_.size() || in_[at_ + 1] != '{' || end == std::string_view::npos) {
      refuse(fmt::format("\\{}", p));
    }
    std::string_view name = in_.substr(at_ + 2, end - at_ - 2);
    bool negated = p == 'P';
    if (!name.empty() && name[0] == '^') {
      negated = !negated;
      name.remove_prefix(1);
    }
    for (const char c : name) {
      if (!is_letter(c) && !is_digit(c) && c != '_' && c != ' ' && c != '-' && c != '&') {
        refuse(in_.substr(at_ - 1, end - at_ + 2));
      }
    }
    static constexpr std::string_view kNames[][2] = {
        {"Alpha", "Alphabetic"}, {"Digit", "Nd"},        {"Space", "White_Space"},
        {"Upper", "Uppercase"},  {"Lower", "Lowercase"}, {"Punct", "P"},
        {"Letter", "L"},         {"Mark", "M"},          {"Number", "N"},
        {"Punctuation", "P"},    {"Symbol", "S"},        {"Separator", "Z"},
        {"Other", "C"}};
    // Anything longer than a category is a script; PCRE2 alone would take its extensions along.
    std::string translated = name.size() > 2 ? fmt::format("sc:{}", name) : std::string(name);
    for (const auto& [theirs, ours] : kNames) {
      if (name == theirs) translated = ours;
    }
    out_ += fmt::format("\\{}{{{}}}", negated ? 'P' : 'p', translated);
    at_ = end + 1;
  }

  // After \x or \u: a code point.
  void code_point() {
    const bool braces = in_[at_] == 'x' && at_ + 1 < in_.size() && in_[at_ + 1] == '{';
    size_t i = at_ + (braces ? 2 : 1);
    const size_t most = braces ? 6 : in_[at_] == 'u' ? 4 : 2;
    std::string digits;
    while (i < in_.size() && digits.size() < most && is_hex(in_[i])) digits += in_[i++];
    const bool closed = !braces || (i < in_.size() && in_[i] == '}');
    // A bare \xHH above 7F is a byte in Oniguruma, not a character.
    const bool byte =
        !braces && most == 2 && !digits.empty() && std::stoi(digits, nullptr, 16) > 0x7F;
    if (digits.empty() || !closed || byte || (most == 4 && digits.size() != 4)) {
      refuse(fmt::format("\\{}", in_.substr(at_, i - at_)));
    }
    out_ += "\\x{" + digits + "}";
    at_ = i + (braces ? 1 : 0);
  }

  // What means the same inside and outside of a class. False: not one of those.
  bool common_escape() {
    const char c = in_[at_];
    switch (c) {
      case 's':
        out_ += kSpace;
        break;
      case 'S':
        out_ += kNotSpace;
        break;
      case 'd':
        out_ += "\\p{Nd}";
        break;
      case 'D':
        out_ += "\\P{Nd}";
        break;
      case 'n':
      case 'r':
      case 't':
      case 'f':
      case 'a':
      case 'e':
        out_ += '\\';
        out_ += c;
        break;
      case 'v':
        out_ += "\\x{B}";
        break;
      case 'p':
      case 'P':
        property();
        return true;
      case 'x':
      case 'u':
        code_point();
        return true;
      default:
        if (is_letter(c) || is_digit(c)) return false;
        if (uint8_t(c) < 0x80) out_ += '\\';
        copy_character();
        return true;
    }
    ++at_;
    return true;
  }

  void escape() {
    if (++at_ == in_.size()) refuse("\\");
    if (common_escape()) return;
    const char c = in_[at_++];
    switch (c) {
      case 'w':
        out_ += fmt::format("[{}]", kWord);
        return;
      case 'W':
        out_ += fmt::format("[^{}]", kWord);
        return;
      case 'h':
        out_ += fmt::format("[{}]", kHex);
        return;
      case 'H':
        out_ += fmt::format("[^{}]", kHex);
        return;
      case 'b':
        out_ += fmt::format("(?:(?<=[{0}])(?![{0}])|(?<![{0}])(?=[{0}]))", kWord);
        return;
      case 'B':
        out_ += fmt::format("(?:(?<=[{0}])(?=[{0}])|(?<![{0}])(?![{0}]))", kWord);
        return;
      case 'A':
      case 'z':
      case 'Z':
        out_ += '\\';
        out_ += c;
        return;
      default:
        refuse(fmt::format("\\{}", c));
    }
  }

  void character_class() {
    const size_t start = at_;
    out_ += in_[at_++];
    if (at_ < in_.size() && in_[at_] == '^') out_ += in_[at_++];
    if (at_ < in_.size() && in_[at_] == ']') {  // first: itself
      out_ += "\\]";
      ++at_;
    }
    while (at_ < in_.size() && in_[at_] != ']') {
      if (in_[at_] == '[') refuse("[ within [ ]");
      if (in_.substr(at_, 2) == "&&") refuse("&&");
      if (in_[at_] == '\\') {
        if (++at_ == in_.size()) refuse("\\");
        if (common_escape()) continue;
        const char c = in_[at_++];
        if (c == 'w') {
          out_ += kWord;
        } else if (c == 'h') {
          out_ += kHex;
        } else if (c == 'b') {
          out_ += "\\x{8}";
        } else {
          refuse(fmt::format("\\{} within [ ]", c));
        }
      } else {
        copy_character();
      }
    }
    if (at_ == in_.size()) refuse(in_.substr(start, 1));
    out_ += in_[at_++];
  }

  std::string_view in_;
  const std::string& where_;
  std::string out_;
  size_t at_ = 0;
  std::optional<size_t> atom_;
  std::vector<size_t> groups_;
};

}  // namespace

std::string pcre_from_onigmo(std::string_view pattern, const std::string& where) {
  return Translator(pattern, where).run();
}

}  // namespace hydrant::text
