#include "runtime/backends/registry.hpp"

#include <algorithm>
#include <charconv>
#include <mutex>

#include "runtime/base/error.hpp"
#include "runtime/base/log.hpp"

namespace hydrant {
namespace {

// A device that was passed over, and what is used instead; said once, for a command may open its
// device several times.
void say_once(const std::string& line) {
  static std::mutex mutex;
  static std::string said;
  const std::lock_guard lock(mutex);
  if (said != line) log::warning("{}", line);
  said = line;
}

// The machine has such a device, be it usable or not: then it is no silent matter that another is
// used.
bool is_there(const Backend& b) {
  try {
    return !b.devices || !b.devices().empty();
  } catch (const Error&) {
    return true;
  }
}

// The backend's first device that can be opened; null, with the reasons added to `passed`, when
// there is none.
std::unique_ptr<Device> open_first(const Backend& b, DeviceOptions options, std::string& passed) {
  const auto pass = [&](std::string_view why) {
    passed += fmt::format("{}{} cannot be used: {}", passed.empty() ? "" : "; ", b.name, why);
  };
  if (const std::string why = b.trouble(); !why.empty()) {
    if (is_there(b)) pass(why);
    return nullptr;
  }
  const int count = b.devices ? int(b.devices().size()) : 1;
  for (options.index = 0; options.index < count; options.index++) try {
      return b.open(options);
    } catch (const Error& e) {
      pass(e.what());
    }
  return nullptr;
}

std::unique_ptr<Device> open_best(const DeviceOptions& options) {
  std::vector<const Backend*> order;
  for (const Backend& b : backends()) order.push_back(&b);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return a->preference > b->preference; });
  std::string passed;
  std::unique_ptr<Device> device;
  for (size_t i = 0; !device && i + 1 < order.size(); i++)
    device = open_first(*order[i], options, passed);
  if (!device) device = order.back()->open(options);  // what it throws is the answer
  if (!passed.empty()) say_once(fmt::format("device: {}; {} is used", passed, device->describe()));
  return device;
}

}  // namespace

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

bool is_automatic(std::string_view name) { return name.empty() || name == "auto"; }

std::unique_ptr<Device> open_device(std::string_view name, const DeviceOptions& options) {
  if (is_automatic(name)) return open_best(options);
  const DeviceName wanted = parse_device(name);
  std::string known;
  for (const Backend& b : backends()) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", b.name);
    if (wanted.backend != b.name) continue;
    if (const std::string why = trouble_with(b, wanted.index); !why.empty())
      fail(Fault::bad_config, "device: {} cannot be used: {}", name, why);
    DeviceOptions chosen = options;
    chosen.index = wanted.index;
    return b.open(chosen);
  }
  fail(Fault::bad_config, "device: unknown '{}'; known: {}", name, known);
}

}  // namespace hydrant
