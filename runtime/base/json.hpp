// nlohmann/json under one short name, and the one way to parse text that others wrote. Include in
// .cpp files; headers forward-declare with json_fwd.hpp.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "runtime/base/error.hpp"

namespace hydrant {

using Json = nlohmann::json;

// as_written: a number that is no integer of 64 bits is kept as it is spelled, for messages that
// quote it. Only number_of and shown know such a value.
enum class Numbers : uint8_t { values, as_written };

// Throws `fault` naming `file` (unless that is empty) and the place for text that is no JSON, nests
// deeper than 64, or has a key twice in one object (readers disagree on which of the two counts).
Json parse_json(std::string_view text, const std::string& file, Fault fault = Fault::bad_file,
                Numbers numbers = Numbers::values);

// The same for text that another reader has refused: what it found may only follow from damage that
// comes later. Returns where the text is JSON, or nests deeper than 64 before it is none.
void check_json(std::string_view text, const std::string& file, Fault fault = Fault::bad_file);

Json written_number(std::string_view spelling);
bool is_number(const Json& value);  // as written or not
double number_of(const Json& value);

// A value in a message: short enough for one line, its numbers as written.
std::string shown(const Json& value);

}  // namespace hydrant
