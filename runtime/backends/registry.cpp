#include "runtime/backends/registry.hpp"

#include <charconv>

#include "runtime/base/error.hpp"

namespace hydrant {

DeviceName parse_device(std::string_view name) {
  const size_t colon = name.find(':');
  if (colon == name.npos) return {name};
  const std::string_view digits = name.substr(colon + 1);
  int index = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (error != std::errc() || end != digits.data() + digits.size() || index < 0)
    fail(Fault::bad_config, "device: '{}' must be a backend, or a backend, a colon and a number",
         name);
  return {name.substr(0, colon), index};
}

std::string trouble_with(const Backend& backend, int index) {
  if (std::string why = backend.trouble(); !why.empty()) return why;
  const std::vector<std::string> devices =
      backend.devices ? backend.devices() : std::vector<std::string>{"the machine itself"};
  if (size_t(index) < devices.size()) return "";
  std::string list;
  for (size_t i = 0; i < devices.size(); i++)
    list += fmt::format("{}{}: {}", i ? "; " : "", i, devices[i]);
  return fmt::format("there is no device {}, only {}", index, list);
}

std::unique_ptr<Device> open_device(std::string_view name, const DeviceOptions& options) {
  const DeviceName wanted = parse_device(name);
  const Backend* best = nullptr;
  std::string known;
  for (const Backend& b : backends()) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", b.name);
    if (wanted.backend == b.name) {
      if (const std::string why = trouble_with(b, wanted.index); !why.empty())
        fail(Fault::bad_config, "device: {} cannot be used: {}", name, why);
      DeviceOptions chosen = options;
      chosen.index = wanted.index;
      return b.open(chosen);
    }
    if (b.usable() && (!best || b.preference > best->preference)) best = &b;
  }
  if (!name.empty()) fail(Fault::bad_config, "device: unknown '{}'; known: {}", name, known);
  ensure(best != nullptr, "no usable backend");
  return best->open(options);
}

}  // namespace hydrant
