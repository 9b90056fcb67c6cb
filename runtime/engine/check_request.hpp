// What makes a request one that can be run.
#pragma once
#include "runtime/engine/generator.hpp"

namespace hydrant {

// Throws bad_input naming what is wrong with it: no prompt, an id outside the vocabulary, more
// positions than the model has, sampling values outside their range, plans that do not fit the
// model.
void check_request(const ModelSpec& spec, const Request& row);

}  // namespace hydrant
