// A model known by its description alone, such as those in configs/models: enough for figures of
// memory, and a pattern for weights that are made up.
#pragma once
#include <string>

#include "runtime/base/dtype.hpp"
#include "runtime/model/checkpoint.hpp"
#include "runtime/model/family.hpp"
#include "runtime/model/model_files.hpp"

namespace hydrant {

bool is_shape(const std::string& path);  // a file that begins as a JSON object does

// What open_model would say of a folder with this config.json and no weights. Throws bad_file.
ModelFiles open_shape(const std::string& path);

// What its "torch_dtype" says; bf16 when it says nothing. Throws bad_file for any but f32, f16 and
// bf16.
DType shape_dtype(const ModelFiles& shape);

// The tensors that the sources ask for, all of one type and in no file: they can be planned with,
// not read.
Checkpoint shape_tensors(const WeightSources& sources, DType dtype);

}  // namespace hydrant
