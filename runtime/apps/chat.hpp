#pragma once
#include "runtime/model/model_files.hpp"
#include "runtime/text/chat_template.hpp"

namespace hydrant {

// The model's chat template and the tokens it may name. Throws bad_file when it has none.
text::ChatSource chat_source(const ModelFiles& files);

}  // namespace hydrant
