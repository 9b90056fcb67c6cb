// Runs operations on every device that this machine has.
#pragma once
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "runtime/backends/registry.hpp"
#include "test/support/test_backend.hpp"

namespace hydrant::test {

struct DeviceChoice {
  std::string backend;
  DeviceOptions options;
};

// Each usable backend; the CPU once for each instruction path.
inline std::vector<DeviceChoice> device_choices(int threads = 1) {
  std::vector<DeviceChoice> choices;
  for (const Backend& backend : backends()) {
    if (!backend.usable() || (!test_backend().empty() && backend.name != test_backend())) continue;
    if (!backend.paths) {
      choices.push_back({std::string(backend.name), {}});
      continue;
    }
    for (const InstructionPath& path : backend.paths())
      choices.push_back({std::string(backend.name), {threads, std::string(path.name)}});
  }
  return choices;
}

// A device, a stream and the memory that a test uses on them.
class Bench {
 public:
  explicit Bench(const DeviceChoice& choice, bool inline_work = true)
      : device(open_device(choice.backend, choice.options)),
        stream(device->make_stream("compute", inline_work)) {}
  Ops& ops() { return device->ops(); }
  bool is_cpu() const { return device->name() == "cpu"; }

  void* bytes(size_t count, int fill = 0xff) {  // 0xff: floats that are NaN
    buffers_.push_back(device->allocate(Memory::device, count + 1, "a test"));
    const std::vector<unsigned char> content(count, static_cast<unsigned char>(fill));
    stream->copy(buffers_.back().data(), content.data(), count);
    stream->synchronize();
    return buffers_.back().data();
  }
  Tensor make(DType dtype, Shape shape) {
    return {bytes(size_t(row_bytes(dtype, shape.count()))), dtype, shape};
  }
  Tensor put(const std::vector<float>& values, Shape shape) {
    return put_as(DType::f32, values.data(), values.size(), shape);
  }
  Tensor put(const std::vector<int32_t>& values, Shape shape) {
    return put_as(DType::i32, values.data(), values.size(), shape);
  }
  template <class T = float>
  std::vector<T> get(const Tensor& from) {
    std::vector<T> values(size_t(from.shape.count()));
    stream->copy(values.data(), from.data, values.size() * sizeof(T));
    stream->synchronize();
    return values;
  }

  // Bytes of the host's there, and back.
  void* put_bytes(const void* from, size_t count) {
    void* const to = bytes(count);
    stream->copy(to, from, count);
    stream->synchronize();
    return to;
  }
  void get_bytes(void* to, const void* from, size_t count) {
    stream->copy(to, from, count);
    stream->synchronize();
  }

  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;

 private:
  Tensor put_as(DType dtype, const void* values, size_t count, const Shape& shape) {
    REQUIRE(shape.count() == int64_t(count));
    const Tensor to = make(dtype, shape);
    stream->copy(to.data, values, count * 4);
    stream->synchronize();
    return to;
  }
  std::vector<Buffer> buffers_;
};

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return false;
  return a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

// Calls f(bench) for one choice after another, with one and with three threads (more than small
// machines have cores); the CPU's results must be the same bits each time.
template <class Run>
void same_everywhere(const Run& run) {
  decltype(run(std::declval<Bench&>())) expected;
  for (const int threads : {1, 3})
    for (const DeviceChoice& choice : device_choices(threads)) {
      INFO(choice.backend << " " << choice.options.isa << ", " << threads << " threads");
      Bench bench(choice);
      auto result = run(bench);
      if (choice.backend != "cpu") continue;
      if (expected.empty())
        expected = std::move(result);
      else
        CHECK(same_bits(result, expected));
    }
}

}  // namespace hydrant::test
