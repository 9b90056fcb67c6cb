// Any bytes as a GGUF model: read, described, planned and loaded, or refused.
#include "models/registry.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/log.hpp"
#include "runtime/model/load_weights.hpp"
#include "test/fuzz/memory_file.hpp"
#include "test/support/row_device.hpp"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  hydrant::log::set_level(hydrant::log::Level::none);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hydrant;
  static test::MemoryFile file;
  file.fill(data, size);
  try {
    const ModelFiles files = open_model(file.path());
    const ModelFamily& family = find_family(files.architecture, files.kind, files.description);
    const ModelSpec spec = describe(family, files);
    test::RowDevice device(1);
    const WeightPlan plan =
        plan_weights(files.checkpoint, spec, family.sources(spec, files.kind), device.ops(), false);
    load_weights(files.checkpoint, spec, plan, device);
  } catch (const Error& e) {
    if (e.fault() != Fault::bad_file) throw;
  }
  return 0;
}
