// The processor and its memory as a device.
#pragma once
#include "runtime/backends/cpu/cpu_ops.hpp"
#include "runtime/backends/cpu/isa.hpp"
#include "runtime/backends/cpu/thread_pool.hpp"
#include "runtime/device/device.hpp"
#include "runtime/device/host_memory.hpp"

namespace hydrant::cpu {

// All kinds of memory are the same here. Streams may run beside each other; of their operations one
// at a time has the thread pool.
class CpuDevice final : public Device {
 public:
  explicit CpuDevice(const DeviceOptions& options);  // throws bad_config
  std::string_view name() const override { return "cpu"; }
  std::string describe() const override;
  std::string_view isa() const override { return cpu::name(isa_); }
  int threads() const override { return pool_.size(); }
  Buffer allocate(Memory memory, size_t bytes, std::string_view what) override;
  size_t available(Memory) const override { return memory_.available(); }
  bool is_host() const override { return true; }
  std::unique_ptr<Stream> make_stream(std::string_view lane, bool inline_work) override;
  std::unique_ptr<Event> make_event() override;
  Ops& ops() override { return ops_; }

 private:
  Isa isa_;
  ThreadPool pool_;
  HostMemory memory_;
  CpuOps ops_;
};

}  // namespace hydrant::cpu
