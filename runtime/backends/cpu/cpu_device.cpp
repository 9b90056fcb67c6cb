#include "runtime/backends/cpu/cpu_device.hpp"

#include "runtime/backends/cpu/host_stream.hpp"
#include "runtime/base/error.hpp"

namespace hydrant::cpu {
namespace {

int team_size(int threads) {
  constexpr int kMost = 1024;
  if (threads < 0 || threads > kMost)
    fail(Fault::bad_config, "threads: {}, expected 0 (all usable cores) to {}", threads, kMost);
  return threads == 0 ? usable_cores() : threads;
}

}  // namespace

CpuDevice::CpuDevice(const DeviceOptions& options)
    : isa_(choose_isa(options.isa)), pool_(team_size(options.threads)), ops_(pool_, isa_) {}

std::string CpuDevice::describe() const {
  return fmt::format("cpu: {}, {} thread{}", isa(), threads(), threads() == 1 ? "" : "s");
}

Buffer CpuDevice::allocate(Memory memory, size_t bytes, std::string_view what) {
  return memory_.allocate(memory, bytes, what);
}

std::unique_ptr<Stream> CpuDevice::make_stream(std::string_view lane, bool inline_work) {
  return std::make_unique<HostStream>(lane, inline_work);
}

std::unique_ptr<Event> CpuDevice::make_event() { return std::make_unique<HostEvent>(); }

}  // namespace hydrant::cpu
