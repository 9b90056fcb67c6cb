#include "runtime/backends/cuda/cuda_device.hpp"
#include "runtime/backends/cuda/cuda_errors.hpp"

namespace hydrant {

const Backend& cuda_backend();  // the generated registry's declaration

const Backend& cuda_backend() {
  static constexpr Backend backend{"cuda",
                                   /*preference=*/10,
                                   cuda::trouble,
                                   [](const DeviceOptions& options) -> std::unique_ptr<Device> {
                                     return std::make_unique<cuda::CudaDevice>(options);
                                   },
                                   /*paths=*/nullptr,
                                   cuda::describe_devices};
  return backend;
}

}  // namespace hydrant
