#include "runtime/apps/input.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <utf8proc.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <map>

#include "runtime/apps/json_text.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/json.hpp"

namespace hydrant {
namespace {

class Descriptor {
 public:
  explicit Descriptor(const std::string& path)
      : number_(path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~Descriptor() {
    if (number_ > STDIN_FILENO) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

// The id as the line gives it; lines without one are called by their number.
class Ids {
 public:
  std::string take(Fields& fields, size_t number) {
    const Json* given = fields.any("id");
    if (given && !given->is_string() && !given->is_number_integer())
      fail(Fault::bad_input, "id: must be a text or an integer, not {}", shown(*given));
    const std::string id = given ? given->dump() : std::to_string(number);
    const auto [at, fresh] = taken_.emplace(id, Owner{number, given != nullptr});
    const Owner& other = at->second;
    constexpr std::string_view kUnnamed = ", which has none and is called by its number";
    if (!fresh)
      fail(Fault::bad_input, "id: {}, of line {}{}, is also that of line {}{}", id, number,
           given ? "" : kUnnamed, other.line, other.named ? "" : kUnnamed);
    return id;
  }

 private:
  struct Owner {
    size_t line;
    bool named;
  };
  std::map<std::string, Owner> taken_;
};

}  // namespace

std::string input_name(const std::string& path) { return path == "-" ? "standard input" : path; }

std::string read_input(const std::string& path) {
  const std::string name = input_name(path);
  const Descriptor in(path);
  std::string text;
  char block[1 << 16];
  while (true) {
    const ssize_t got = in.number() < 0 ? -1 : ::read(in.number(), block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(Fault::bad_input, "{}: {}", name, std::strerror(errno));
    if (got == 0) return text;
    text.append(block, size_t(got));
  }
}

void require_utf8(std::string_view text, const std::string& what) {
  const auto* at = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  for (size_t i = 0; i < text.size();) {
    utf8proc_int32_t code = 0;
    const utf8proc_ssize_t length =
        utf8proc_iterate(at + i, utf8proc_ssize_t(text.size() - i), &code);
    if (length < 0)
      fail(Fault::bad_input, "{}: not UTF-8 at byte {} (0x{:02x})", what, i, unsigned{at[i]});
    i += size_t(length);
  }
}

Fields::Fields(const Json& object) : object_(object) {
  if (!object.is_object()) fail(Fault::bad_input, "must be a JSON object, not {}", shown(object));
}

const Json* Fields::any(const char* key) {
  known_.push_back(key);
  const auto it = object_.find(key);
  return it == object_.end() ? nullptr : &*it;
}

std::optional<std::string> Fields::text(const char* key) {
  const Json* value = any(key);
  if (!value) return std::nullopt;
  if (!value->is_string()) fail(Fault::bad_input, "{}: must be a text, not {}", key, shown(*value));
  return value->get<std::string>();
}

std::optional<std::vector<std::string>> Fields::texts(const char* key) {
  const Json* value = any(key);
  if (!value) return std::nullopt;
  std::vector<std::string> texts;
  bool fits = value->is_array();
  if (fits)
    for (const Json& e : *value)
      if (!(fits = fits && e.is_string() && !e.get_ref<const std::string&>().empty())) break;
  if (!fits)
    fail(Fault::bad_input, "{}: must be a list of non-empty texts, not {}", key, shown(*value));
  return value->get<std::vector<std::string>>();
}

std::optional<std::vector<int32_t>> Fields::ids(const char* key) {
  const Json* value = any(key);
  if (!value) return std::nullopt;
  if (!value->is_array())
    fail(Fault::bad_input, "{}: must be a list of token ids, not {}", key, shown(*value));
  std::vector<int32_t> ids;
  for (const Json& e : *value) {
    if (!e.is_number_unsigned() || e.get<uint64_t>() > std::numeric_limits<int32_t>::max())
      fail(Fault::bad_input, "{}[{}]: must be a token id from 0 to {}, not {}", key, ids.size(),
           std::numeric_limits<int32_t>::max(), shown(e));
    ids.push_back(e.get<int32_t>());
  }
  return ids;
}

std::optional<uint64_t> Fields::integer(const char* key, uint64_t low, uint64_t high) {
  const Json* value = any(key);
  if (!value) return std::nullopt;
  if (!value->is_number_unsigned() || value->get<uint64_t>() < low || value->get<uint64_t>() > high)
    fail(Fault::bad_input, "{}: must be an integer from {} to {}, not {}", key, low, high,
         shown(*value));
  return value->get<uint64_t>();
}

std::optional<bool> Fields::toggle(const char* key) {
  const Json* value = any(key);
  if (!value) return std::nullopt;
  if (!value->is_boolean())
    fail(Fault::bad_input, "{}: must be true or false, not {}", key, shown(*value));
  return value->get<bool>();
}

void Fields::finish() const {
  for (const auto& [key, value] : object_.items())
    if (std::find(known_.begin(), known_.end(), key) == known_.end())
      fail(Fault::bad_input, "{}: unknown key{}", key, suggestion(key, known_));
}

std::vector<InputLine> read_lines(std::string_view text,
                                  const std::function<void(InputLine&, Fields&)>& use) {
  std::vector<InputLine> lines;
  Ids ids;
  size_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view body = text.substr(begin, end - begin);
    begin = end + 1;
    number++;
    if (body.find_first_not_of(" \t\r") == body.npos) continue;
    InputLine line{number, "null", ""};
    try {
      const Json object = parse_json(body, "", Fault::bad_input, Numbers::as_written);
      Fields fields(object);
      line.id = ids.take(fields, number);
      use(line, fields);
      fields.finish();
    } catch (const Error& e) {
      if (e.fault() != Fault::bad_input) throw;
      line.error = e.what();
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string failure_line(const std::vector<InputLine>& lines, size_t failed) {
  std::string text = fmt::format("{} of {} lines failed", failed, lines.size());
  const auto first = std::find_if(lines.begin(), lines.end(),
                                  [](const InputLine& line) { return !line.error.empty(); });
  if (first != lines.end()) text += fmt::format("; line {}: {}", first->number, first->error);
  return text;
}

}  // namespace hydrant
