#include "runtime/apps/list_devices.hpp"

#include <fmt/format.h>

#include "runtime/apps/output.hpp"
#include "runtime/backends/registry.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/json.hpp"

namespace hydrant {
namespace {

// Some things are known only when it is opened: another process may have it to itself.
std::string trouble_of_opening(const Backend& b, int index, const std::string& name) {
  DeviceOptions options;
  options.index = index;
  try {
    b.open(options);
    return "";
  } catch (const Error& e) {
    const std::string why = e.what(), named = fmt::format("device: {}: ", name);
    return why.starts_with(named) ? why.substr(named.size()) : why;
  }
}

}  // namespace

int list_devices(const RunConfig& config) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  std::string text;
  const auto add = [&](const std::string& name, std::string about, const std::string& why) {
    if (!why.empty()) about += (about.empty() ? "cannot be used: " : "; cannot be used: ") + why;
    list.push_back({{"device", name}, {"about", about}, {"usable", why.empty()}});
    text += fmt::format("{:<10}{}\n", name, about);
  };
  for (const Backend& b : backends()) {
    std::string why = b.trouble();
    std::vector<std::string> devices;
    try {
      if (b.devices) devices = b.devices();
    } catch (const Error& e) {
      if (why.empty()) why = e.what();
    }
    for (size_t i = 0; i < devices.size(); i++) {
      const std::string name = fmt::format("{}:{}", b.name, i);
      add(name, devices[i], trouble_of_opening(b, int(i), name));
    }
    if (!why.empty() && devices.empty()) add(std::string(b.name), "", why);
    if (why.empty() && !b.devices) add(std::string(b.name), b.open({})->describe(), "");
  }
  Output("").write(config.inspect.json ? nlohmann::ordered_json{{"devices", list}}.dump(2) + "\n"
                                       : text);
  return 0;
}

}  // namespace hydrant
