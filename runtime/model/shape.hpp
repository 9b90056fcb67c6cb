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
// The same of its text; `name` is for messages.
ModelFiles read_shape(const std::string& name, const std::string& text);

// What its "torch_dtype" says; bf16 when it says nothing. Throws bad_file for any but f32, f16 and
// bf16.
DType shape_dtype(const ModelFiles& shape);

// The tensors that the sources ask for, in no file: they can be planned with, not read. All are of
// one type, vectors of blocks excepted, which are f32. Throws bad_config for rows that are not
// whole blocks.
Checkpoint shape_tensors(const WeightSources& sources, DType dtype);

// The same, made up: uniform random numbers, and ones for the gains of norms. Their spread (0.02,
// that of models before training) keeps activations finite. All blocks are alike. A number depends
// on the seed, the tensor's name and its own place in it alone. `name`: for messages.
Checkpoint synthetic_tensors(const std::string& name, const WeightSources& sources, DType dtype,
                             uint64_t seed);

}  // namespace hydrant
