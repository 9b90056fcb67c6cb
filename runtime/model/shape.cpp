#include "runtime/model/shape.hpp"

#include <filesystem>
#include <fstream>
#include <unordered_set>
#include <utility>

#include "runtime/base/aligned.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/json.hpp"
#include "runtime/model/config_reader.hpp"
#include "runtime/model/random_rows.hpp"

namespace hydrant {
namespace {

constexpr uint64_t kLongestConfig = uint64_t{16} << 20;

constexpr uint64_t kAlignment = 64;  // of tensors in the file that a shape stands for

StoredTensor tensor_of(const std::string& name, std::vector<int64_t> shape, DType dtype) {
  StoredTensor t;
  t.name = name;
  t.dtype = dtype;
  t.type_name = hydrant::name(dtype);
  t.columns = shape.back();
  if (t.columns % block_elements(dtype) != 0)
    fail(Fault::bad_config, "{}: blocks of {} elements do not fit rows of {}, in tensor {}",
         t.type_name, block_elements(dtype), t.columns, name);
  for (size_t i = 0; i + 1 < shape.size(); i++) t.rows *= shape[i];
  t.bytes = uint64_t(t.rows) * uint64_t(row_bytes(dtype, t.columns));
  t.shape = std::move(shape);
  return t;
}

// One behind another.
std::vector<StoredTensor> tensors_of(const WeightSources& sources, DType dtype) {
  std::vector<StoredTensor> tensors;
  std::unordered_set<std::string> known;  // several matrices may be parts of one
  uint64_t end = 0;
  const auto add = [&](const TensorSource& source, std::vector<int64_t> shape, DType type) {
    if (source.names.empty() || !known.insert(source.names.front()).second) return;
    StoredTensor& t = tensors.emplace_back(tensor_of(source.names.front(), std::move(shape), type));
    t.offset = align_up(end, kAlignment);
    end = t.offset + t.bytes;
  };
  for (const MatrixSource& m : sources.matrices) add(m, {m.tensor_rows, m.k}, dtype);
  for (const VectorSource& v : sources.vectors)
    add(v, {v.tensor_size}, is_quantised(dtype) ? DType::f32 : dtype);
  return tensors;
}

std::unordered_set<std::string> gains_of(const WeightSources& sources) {
  std::unordered_set<std::string> names;
  for (const VectorSource& v : sources.vectors)
    if (v.role == Vector::norm1_gain || v.role == Vector::norm2_gain ||
        v.role == Vector::final_gain)
      names.insert(v.names.begin(), v.names.end());
  return names;
}

}  // namespace

bool is_shape(const std::string& path) {
  std::error_code unreadable;
  if (!std::filesystem::is_regular_file(path, unreadable)) return false;
  std::ifstream file(path);
  char first = 0;
  return bool(file >> first) && first == '{';  // >> passes over spaces
}

ModelFiles open_shape(const std::string& path) {
  return read_shape(path, read_text(path, kLongestConfig));
}

ModelFiles read_shape(const std::string& name, const std::string& text) {
  ModelFiles files;
  files.path = files.description = name;
  auto config = std::make_shared<const Json>(parse_json(text, name));
  files.architecture = ConfigReader(*config, name).text("model_type");
  files.config = std::move(config);
  return files;
}

DType shape_dtype(const ModelFiles& shape) {
  const ConfigReader config(*shape.config, shape.description);
  const std::string said = config.text_or("torch_dtype", "bfloat16");
  for (const auto& [word, dtype] :
       {std::pair("float32", DType::f32), std::pair("float16", DType::f16),
        std::pair("bfloat16", DType::bf16)})
    if (said == word) return dtype;
  config.refuse("torch_dtype", "may be float32, float16 or bfloat16");
}

Checkpoint shape_tensors(const WeightSources& sources, DType dtype) {
  return Checkpoint({}, tensors_of(sources, dtype));
}

Checkpoint synthetic_tensors(const std::string& name, const WeightSources& sources, DType dtype,
                             uint64_t seed) {
  return Checkpoint(name, tensors_of(sources, dtype), random_rows(gains_of(sources), seed));
}

}  // namespace hydrant
