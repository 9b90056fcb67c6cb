// Runs a parsed template.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "runtime/text/jinja/syntax.hpp"

namespace hydrant::text::jinja {

// `variables` is an object. Throws bad_input with the template's own words where it raises an
// exception, and bad_file, beginning with `where`, where it needs something that is not supported
// or takes too many steps.
std::string render(const std::vector<Node>& nodes, const nlohmann::json& variables,
                   const std::string& where);

}  // namespace hydrant::text::jinja
