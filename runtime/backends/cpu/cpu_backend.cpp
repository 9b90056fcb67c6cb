#include "runtime/backends/cpu/cpu_device.hpp"

namespace hydrant {

const Backend& cpu_backend();  // the generated registry's declaration

const Backend& cpu_backend() {
  static constexpr Backend backend{"cpu", /*preference=*/0, [] { return true; },
                                   [](const DeviceOptions& options) -> std::unique_ptr<Device> {
                                     return std::make_unique<cpu::CpuDevice>(options);
                                   }};
  return backend;
}

}  // namespace hydrant
