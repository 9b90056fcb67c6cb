// A compiled expression from a tokenizer file.
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hydrant::text {

struct Range {
  size_t begin, end;
};

// Immutable; may be used from several threads. The expression is untrusted: a match that takes too
// many steps ends with an error instead of hanging.
class Regex {
 public:
  // Throws bad_file, beginning with `where`, for what is not understood.
  Regex(std::string_view onigmo_pattern, const std::string& where);

  // The first match in text[from, end); may be empty. Throws bad_input when the limit is reached.
  std::optional<Range> find(std::string_view valid_utf8, size_t from) const;

 private:
  struct Code;
  std::shared_ptr<const Code> code_;
};

}  // namespace hydrant::text
