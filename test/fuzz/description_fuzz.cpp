// Any bytes as config.json, read by every family: a list of sources, or a refusal.
#include <memory>
#include <string_view>

#include "models/registry.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/json.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hydrant;
  ModelFiles files;
  files.description = "config.json";
  try {
    files.config = std::make_shared<const Json>(
        parse_json({reinterpret_cast<const char*>(data), size}, files.description));
  } catch (const Error&) {
    return 0;
  }
  for (const ModelFamily* family : families()) try {
      family->sources(describe(*family, files), FileKind::hugging_face);
    } catch (const Error& e) {
      if (e.fault() != Fault::bad_file) throw;
    }
  return 0;
}
