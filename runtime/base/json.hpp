// nlohmann/json under one short name. Include in .cpp files; headers forward-declare with
// json_fwd.hpp.
#pragma once
#include <nlohmann/json.hpp>

namespace hydrant {
using Json = nlohmann::json;
}
