#include "runtime/model/shape.hpp"

#include <filesystem>
#include <fstream>
#include <map>
#include <utility>

#include "runtime/base/error.hpp"
#include "runtime/base/json.hpp"
#include "runtime/model/config_reader.hpp"

namespace hydrant {
namespace {

constexpr uint64_t kLongestConfig = uint64_t{16} << 20;

StoredTensor tensor_of(const std::string& name, std::vector<int64_t> shape, DType dtype) {
  StoredTensor t;
  t.name = name;
  t.dtype = dtype;
  t.type_name = hydrant::name(dtype);
  t.columns = shape.back();
  for (size_t i = 0; i + 1 < shape.size(); i++) t.rows *= shape[i];
  t.bytes = uint64_t(t.rows) * uint64_t(row_bytes(dtype, t.columns));
  t.shape = std::move(shape);
  return t;
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
  ModelFiles files;
  files.path = files.description = path;
  auto config = std::make_shared<const Json>(parse_json(read_text(path, kLongestConfig), path));
  files.architecture = ConfigReader(*config, path).text("model_type");
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
  std::map<std::string, StoredTensor> tensors;  // several matrices may be parts of one
  const auto add = [&](const TensorSource& source, std::vector<int64_t> shape) {
    if (source.names.empty()) return;
    const std::string& name = source.names.front();
    tensors.emplace(name, tensor_of(name, std::move(shape), dtype));
  };
  for (const MatrixSource& m : sources.matrices) add(m, {m.tensor_rows, m.k});
  for (const VectorSource& v : sources.vectors) add(v, {v.tensor_size});
  std::vector<StoredTensor> list;
  for (auto& [name, tensor] : tensors) list.push_back(std::move(tensor));
  return Checkpoint({}, std::move(list));
}

}  // namespace hydrant
