#include "runtime/backends/cpu/cpu_device.hpp"
#include "runtime/backends/cpu/isa.hpp"

namespace hydrant {

const Backend& cpu_backend();  // the generated registry's declaration

const Backend& cpu_backend() {
  static constexpr Backend backend{"cpu", /*preference=*/0, [] { return std::string(); },
                                   [](const DeviceOptions& options) -> std::unique_ptr<Device> {
                                     return std::make_unique<cpu::CpuDevice>(options);
                                   },
                                   [] {
                                     std::vector<InstructionPath> paths;
                                     for (const cpu::Isa isa : cpu::usable_isas())
                                       paths.push_back({name(isa), is_automatic(isa)});
                                     return paths;
                                   }};
  return backend;
}

}  // namespace hydrant
