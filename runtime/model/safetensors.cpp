#include "runtime/model/safetensors.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "runtime/base/error.hpp"
#include "runtime/base/json.hpp"
#include "runtime/model/extents.hpp"

namespace hydrant {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kLongestHeader = 100'000'000;  // the format's own limit
constexpr size_t kMostExtents = 8;

struct Type {
  std::string_view name;
  uint64_t bytes;
  std::optional<DType> dtype;
};
constexpr std::array<Type, 15> kTypes{{{"F32", 4, DType::f32},
                                       {"F16", 2, DType::f16},
                                       {"BF16", 2, DType::bf16},
                                       {"F64", 8, {}},
                                       {"I64", 8, {}},
                                       {"U64", 8, {}},
                                       {"I32", 4, {}},
                                       {"U32", 4, {}},
                                       {"I16", 2, {}},
                                       {"U16", 2, {}},
                                       {"I8", 1, {}},
                                       {"U8", 1, {}},
                                       {"BOOL", 1, {}},
                                       {"F8_E4M3", 1, {}},
                                       {"F8_E5M2", 1, {}}}};

static_assert(std::endian::native == std::endian::little, "files are little-endian");

// One entry of the header. `file` and the tensor's name begin every message.
class Entry {
 public:
  Entry(const std::string& file, const std::string& tensor, const Json& value)
      : where_(fmt::format("{}: tensor {}", file, printable(tensor))), value_(value) {
    if (!value.is_object()) fail(Fault::bad_file, "{}: its entry is not an object", where_);
  }

  StoredTensor read(const std::string& name, uint64_t data_begin, uint64_t data_bytes) const {
    StoredTensor t;
    t.name = name;
    const Type& type = read_type();
    t.type_name = type.name;
    t.dtype = type.dtype;
    t.shape = read_shape();
    const std::vector<uint64_t> ends = integers("data_offsets", 2);
    if (ends.size() != 2 || ends[0] > ends[1] || ends[1] > data_bytes)
      fail(Fault::bad_file,
           "{}: data_offsets {} are not two ascending offsets within the file's {} bytes of data",
           where_, member("data_offsets").dump().substr(0, 100), data_bytes);
    const std::optional<int64_t> count = element_count(t.shape);
    uint64_t expected = 0;
    if (!count || __builtin_mul_overflow(uint64_t(*count), type.bytes, &expected) ||
        expected != ends[1] - ends[0])
      fail(Fault::bad_file, "{}: shape {} of {} does not take the {} bytes of its data_offsets",
           where_, shape_text(t.shape), type.name, ends[1] - ends[0]);
    t.offset = data_begin + ends[0];
    t.bytes = ends[1] - ends[0];
    if (!t.shape.empty()) t.columns = t.shape.back();
    if (t.columns != 0) t.rows = *count / t.columns;
    return t;
  }

 private:
  const Json& member(const char* key) const {
    const auto at = value_.find(key);
    if (at == value_.end()) fail(Fault::bad_file, "{}: no {}", where_, key);
    return *at;
  }
  const Type& read_type() const {
    const Json& value = member("dtype");
    if (value.is_string())
      for (const Type& t : kTypes)
        if (t.name == value.get_ref<const std::string&>()) return t;
    fail(Fault::bad_file, "{}: unknown dtype {}", where_, value.dump(-1, ' ', true).substr(0, 100));
  }
  std::vector<int64_t> read_shape() const {
    std::vector<int64_t> shape;
    for (const uint64_t extent : integers("shape", kMostExtents)) {
      if (extent > uint64_t(std::numeric_limits<int64_t>::max()))
        fail(Fault::bad_file, "{}: shape holds {}", where_, extent);
      shape.push_back(int64_t(extent));
    }
    return shape;
  }
  std::vector<uint64_t> integers(const char* key, size_t most) const {
    const Json& list = member(key);
    std::vector<uint64_t> values;
    bool good = list.is_array() && list.size() <= most;
    for (size_t i = 0; good && i < list.size(); i++) {
      good = list[i].is_number_unsigned();
      if (good) values.push_back(list[i].get<uint64_t>());
    }
    if (!good)
      fail(Fault::bad_file, "{}: {} is {}, not a list of at most {} whole numbers", where_, key,
           list.dump(-1, ' ', true).substr(0, 100), most);
    return values;
  }

  std::string where_;
  const Json& value_;
};

// The tensors, in the order of their offsets, must not overlap. What they should cover and do not:
// the first hole.
std::string check_cover(const std::string& file, std::vector<StoredTensor>& tensors,
                        uint64_t data_begin, uint64_t file_bytes) {
  std::sort(tensors.begin(), tensors.end(), [](const StoredTensor& a, const StoredTensor& b) {
    return std::pair(a.offset, a.bytes) < std::pair(b.offset, b.bytes);
  });
  std::string hole;
  uint64_t end = data_begin;
  for (const StoredTensor& t : tensors) {
    if (t.offset != end) {
      const std::string place =
          fmt::format("{}: tensor {} begins at byte {}, but the tensor before it ends at {}", file,
                      printable(t.name), t.offset, end);
      if (t.offset < end) fail(Fault::bad_file, "{}", place);
      if (hole.empty()) hole = place;
    }
    end = t.offset + t.bytes;
  }
  if (end != file_bytes && hole.empty())
    hole =
        fmt::format("{}: its tensors end at byte {}, but the file has {}", file, end, file_bytes);
  return hole;
}

using Index = std::map<std::string, std::string>;  // tensor -> file

// File names must be plain, so that a model stays in its folder.
Index read_index(const std::string& path) {
  const Json index = parse_json(read_text(path, kLongestHeader), path);
  const auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (!index.is_object() || map == index.end() || !map->is_object() || map->empty())
    fail(Fault::bad_file, "{}: no weight_map of tensors to files", path);
  Index files;
  for (const auto& [tensor, file] : map->items()) {
    const bool plain = file.is_string() && fs::path(file.get<std::string>()).has_filename() &&
                       fs::path(file.get<std::string>()).filename() == file.get<std::string>();
    if (!plain || file == "." || file == "..")
      fail(Fault::bad_file, "{}: tensor {} is said to be in {}, which is not a file name", path,
           printable(tensor), file.dump(-1, ' ', true).substr(0, 100));
    files[tensor] = file.get<std::string>();
  }
  return files;
}

}  // namespace

SafetensorsHeader read_safetensors_header(const File& file, size_t index) {
  uint64_t length = 0;
  file.read(0, &length, kLengthBytes, "the header's length");
  if (length > kLongestHeader || length > file.size() - kLengthBytes)
    fail(Fault::bad_file, "{}: a header of {} bytes does not fit, the file has {}", file.path(),
         length, file.size());
  std::string text(size_t(length), '\0');
  file.read(kLengthBytes, text.data(), text.size(), "the header");
  const Json header = parse_json(text, file.path());
  if (!header.is_object()) fail(Fault::bad_file, "{}: the header is not an object", file.path());

  const uint64_t begin = kLengthBytes + length;
  SafetensorsHeader found;
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") continue;
    found.tensors.push_back(Entry(file.path(), name, value).read(name, begin, file.size() - begin));
    found.tensors.back().file = index;
  }
  found.hole = check_cover(file.path(), found.tensors, begin, file.size());
  return found;
}

Checkpoint open_safetensors(const std::string& folder) {
  const std::string single = folder + "/model.safetensors", listed = single + ".index.json";
  std::error_code unreadable;  // then the file counts as absent
  Index index;
  std::set<std::string> names;
  if (fs::exists(single, unreadable)) {
    names = {"model.safetensors"};
  } else if (fs::exists(listed, unreadable)) {
    index = read_index(listed);
    for (const auto& [tensor, shard] : index) names.insert(shard);
  } else {
    fail(Fault::bad_file,
         "{}: neither model.safetensors nor model.safetensors.index.json is there (other formats, "
         "such as pytorch_model.bin, are not read)",
         folder);
  }
  std::vector<File> files;
  std::vector<StoredTensor> tensors;
  std::string hole;
  for (const std::string& name : names) {
    files.emplace_back(folder + "/" + name);
    SafetensorsHeader header = read_safetensors_header(files.back(), files.size() - 1);
    for (StoredTensor& t : header.tensors) tensors.push_back(std::move(t));
    if (hole.empty()) hole = std::move(header.hole);
  }
  Checkpoint checkpoint(std::move(files), std::move(tensors), std::move(hole));
  for (const auto& [tensor, shard] : index) {
    const StoredTensor* t = checkpoint.find(tensor);
    if (!t || checkpoint.path_of(*t) != folder + "/" + shard)
      fail(Fault::bad_file, "{}: tensor {} is said to be in {}, which does not hold it", listed,
           printable(tensor), shard);
  }
  return checkpoint;
}

}  // namespace hydrant
