#include "test/support/checkpoint_writer.hpp"

#include <fmt/format.h>

#include <map>

namespace hydrant::test {
namespace {

enum GgufValue : uint32_t { kU32 = 4, kI32 = 5, kF32 = 6, kBool = 7, kText = 8, kArray = 9 };

void pad(std::string& text, uint64_t alignment) {
  text.append((alignment - text.size() % alignment) % alignment, '\0');
}

uint32_t ggml_type(const std::string& name) {
  const std::map<std::string, uint32_t> types{{"f32", 0},   {"f16", 1},  {"q4_0", 2},
                                              {"q4_1", 3},  {"q8_0", 8}, {"q4_k", 12},
                                              {"q6_k", 14}, {"bf16", 30}};
  return types.at(name);
}

}  // namespace

RawTensor f32_tensor(std::string name, std::vector<int64_t> shape,
                     const std::vector<float>& values) {
  return {std::move(name), "F32", std::move(shape), bytes_of(values)};
}

std::string safetensors_bytes(std::string_view header, std::string_view data) {
  std::string file;
  append(file, uint64_t{header.size()});
  return file.append(header).append(data);
}

std::string safetensors_bytes(const std::vector<RawTensor>& tensors) {
  std::string header = R"({"__metadata__":{"format":"pt"})", data;
  for (const RawTensor& t : tensors) {
    header +=
        fmt::format(R"(,"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", t.name, t.type,
                    fmt::join(t.shape, ","), data.size(), data.size() + t.bytes.size());
    data += t.bytes;
  }
  return safetensors_bytes(header + "}", data);
}

std::string GgufWriter::counted(std::string_view text) {
  std::string bytes;
  append(bytes, uint64_t{text.size()});
  return bytes.append(text);
}

std::string GgufWriter::preamble(uint32_t version, uint64_t tensors, uint64_t keys) {
  std::string bytes = "GGUF";
  append(bytes, version);
  append(bytes, tensors);
  append(bytes, keys);
  return bytes;
}

std::string GgufWriter::info(std::string_view name, const std::vector<uint64_t>& extents,
                             uint32_t type, uint64_t offset) {
  std::string bytes = counted(name);
  append(bytes, uint32_t(extents.size()));
  for (const uint64_t e : extents) append(bytes, e);
  append(bytes, type);
  append(bytes, offset);
  return bytes;
}

void GgufWriter::raw(std::string_view key, uint32_t type, std::string_view bytes) {
  keys_ += counted(key);
  append(keys_, type);
  keys_ += bytes;
  count_++;
}

void GgufWriter::integer(std::string_view key, uint32_t value) {
  raw(key, kU32, bytes_of<uint32_t>({value}));
}
void GgufWriter::real(std::string_view key, float value) {
  raw(key, kF32, bytes_of<float>({value}));
}
void GgufWriter::flag(std::string_view key, bool value) {
  raw(key, kBool, bytes_of<uint8_t>({value}));
}
void GgufWriter::text(std::string_view key, std::string_view value) {
  raw(key, kText, counted(value));
}

void GgufWriter::texts(std::string_view key, const std::vector<std::string>& values) {
  std::string bytes = bytes_of<uint32_t>({kText});
  append(bytes, uint64_t{values.size()});
  for (const std::string& v : values) bytes += counted(v);
  raw(key, kArray, bytes);
}

void GgufWriter::reals(std::string_view key, const std::vector<float>& values) {
  std::string bytes = bytes_of<uint32_t>({kF32});
  append(bytes, uint64_t{values.size()});
  raw(key, kArray, bytes + bytes_of(values));
}

void GgufWriter::integers(std::string_view key, const std::vector<int32_t>& values) {
  std::string bytes = bytes_of<uint32_t>({kI32});
  append(bytes, uint64_t{values.size()});
  raw(key, kArray, bytes + bytes_of(values));
}

std::string GgufWriter::head() const {
  std::string bytes = preamble(version, tensors_.size(), count_) + keys_;
  uint64_t offset = 0;
  for (const RawTensor& t : tensors_) {
    bytes += info(t.name, {t.shape.rbegin(), t.shape.rend()}, ggml_type(t.type), offset);
    offset += (t.bytes.size() + alignment - 1) / alignment * alignment;
  }
  return bytes;
}

std::string GgufWriter::bytes() const {
  std::string file = head();
  for (const RawTensor& t : tensors_) {
    pad(file, alignment);
    file += t.bytes;
  }
  pad(file, alignment);
  return file;
}

}  // namespace hydrant::test
