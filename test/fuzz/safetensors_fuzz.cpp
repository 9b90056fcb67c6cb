// Any bytes as a safetensors file: its header read and every row that may be a weight, or refused.
#include <utility>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/model/safetensors.hpp"
#include "test/fuzz/memory_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hydrant;
  static test::MemoryFile file;
  file.fill(data, size);
  try {
    std::vector<File> files;
    files.emplace_back(file.path());
    std::vector<StoredTensor> tensors = read_safetensors_header(files.front(), 0).tensors;
    const Checkpoint checkpoint(std::move(files), std::move(tensors));
    for (const StoredTensor& t : checkpoint.tensors()) {
      if (!t.dtype || t.bytes == 0) continue;
      std::vector<std::byte> rows(t.bytes);
      checkpoint.read_rows(t, 0, t.rows, rows.data());
    }
  } catch (const Error& e) {
    if (e.fault() != Fault::bad_file) throw;
  }
  return 0;
}
