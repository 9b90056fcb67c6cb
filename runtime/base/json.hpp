// nlohmann/json under one short name, and the one way to parse text that others wrote. Include in
// .cpp files; headers forward-declare with json_fwd.hpp.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "runtime/base/error.hpp"

namespace hydrant {

using Json = nlohmann::json;

// Throws `fault` naming `file` for text that is no JSON, nests deeper than 64, or has a key twice
// in one object (readers disagree on which of the two counts).
Json parse_json(std::string_view text, const std::string& file, Fault fault = Fault::bad_file);

}  // namespace hydrant
