#include "runtime/backends/registry.hpp"

#include "runtime/base/error.hpp"

namespace hydrant {

std::unique_ptr<Device> open_device(std::string_view name, const DeviceOptions& options) {
  const Backend* best = nullptr;
  std::string known;
  for (const Backend& b : backends()) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", b.name);
    if (name == b.name) {
      if (const std::string why = b.trouble(); !why.empty())
        fail(Fault::bad_config, "device: {} cannot be used: {}", name, why);
      return b.open(options);
    }
    if (b.usable() && (!best || b.preference > best->preference)) best = &b;
  }
  if (!name.empty()) fail(Fault::bad_config, "device: unknown '{}'; known: {}", name, known);
  ensure(best != nullptr, "no usable backend");
  return best->open(options);
}

}  // namespace hydrant
