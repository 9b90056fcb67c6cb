// An NVIDIA card and its memory as a device.
#pragma once
#include <memory>

#include "runtime/backends/cuda/cuda_ops.hpp"
#include "runtime/backends/cuda/cuda_stream.hpp"
#include "runtime/device/device.hpp"
#include "runtime/device/host_memory.hpp"

namespace hydrant::cuda {

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(const DeviceOptions& options);  // throws bad_config, io
  std::string_view name() const override { return "cuda"; }
  std::string describe() const override { return description_; }
  std::string_view isa() const override { return architecture_; }  // "sm_80"
  int threads() const override { return threads_; }  // of the host, which load weights
  Buffer allocate(Memory memory, size_t bytes, std::string_view what) override;
  size_t available(Memory memory) const override;
  bool is_host() const override { return false; }
  std::unique_ptr<Stream> make_stream(std::string_view lane, bool inline_work) override;
  std::unique_ptr<Event> make_event() override;
  Ops& ops() override { return ops_; }
  DType cache_type() const override { return cache_type_; }

 private:
  void select() const;

  const int index_, threads_;
  std::string architecture_, description_;
  DType cache_type_ = DType::bf16;
  std::shared_ptr<EventPool> events_ = std::make_shared<EventPool>(index_);
  HostMemory host_;
  CudaOps ops_;
};

}  // namespace hydrant::cuda
