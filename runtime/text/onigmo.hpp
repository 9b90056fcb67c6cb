// Tokenizer files write expressions in Oniguruma's Ruby dialect; this program matches with PCRE2.
#pragma once
#include <string>
#include <string_view>

namespace hydrant::text {

// The same expression for PCRE2 (UTF, UCP, MULTILINE, newline LF), without capturing groups. Throws
// bad_file, beginning with `where`, naming the construct that has no translation.
std::string pcre_from_onigmo(std::string_view pattern, const std::string& where);

}  // namespace hydrant::text
