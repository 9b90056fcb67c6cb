// Writes the two checkpoint formats, well-formed or (with the raw parts) damaged at will.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hydrant::test {

// A tensor as it goes into a file. `type` is safetensors' or ggml's name ("BF16", "q4_0").
struct RawTensor {
  std::string name, type;
  std::vector<int64_t> shape;  // row-major
  std::string bytes;
};

template <class T>
void append(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}
template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

RawTensor f32_tensor(std::string name, std::vector<int64_t> shape,
                     const std::vector<float>& values);

// Length, header text, data.
std::string safetensors_bytes(std::string_view header, std::string_view data);
std::string safetensors_bytes(const std::vector<RawTensor>& tensors);

class GgufWriter {
 public:
  uint32_t version = 3;
  uint64_t alignment = 32;

  void integer(std::string_view key, uint32_t value);
  void real(std::string_view key, float value);
  void flag(std::string_view key, bool value);
  void text(std::string_view key, std::string_view value);
  void texts(std::string_view key, const std::vector<std::string>& values);
  void reals(std::string_view key, const std::vector<float>& values);
  void integers(std::string_view key, const std::vector<int32_t>& values);
  // Any value: the type's number and its bytes.
  void raw(std::string_view key, uint32_t type, std::string_view bytes);
  void tensor(RawTensor tensor) { tensors_.push_back(std::move(tensor)); }

  std::string bytes() const;
  // The head alone, up to the padding before the data.
  std::string head() const;
  // One tensor's description, for damage.
  static std::string info(std::string_view name, const std::vector<uint64_t>& extents,
                          uint32_t type, uint64_t offset);
  static std::string preamble(uint32_t version, uint64_t tensors, uint64_t keys);
  static std::string counted(std::string_view text);

 private:
  std::string keys_;
  uint64_t count_ = 0;
  std::vector<RawTensor> tensors_;
};

}  // namespace hydrant::test
