// A place that computes, and the record by which a backend describes itself.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/buffer.hpp"
#include "runtime/device/ops.hpp"
#include "runtime/device/stream.hpp"

namespace hydrant {

struct DeviceOptions {
  int threads = 0;  // 0: all usable cores (CPU backend)
  std::string isa;  // "": the best the machine has (CPU backend)
  int index = 0;    // which of the backend's devices
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view name() const = 0;
  virtual std::string describe() const = 0;  // one line: instruction set or card, threads
  virtual std::string_view isa() const = 0;
  virtual int threads() const = 0;
  virtual Buffer allocate(Memory memory, size_t bytes,
                          std::string_view what) = 0;  // throws out_of_memory naming `what`
  // Bytes that can still be allocated, as far as the system tells; kinds of memory that are the
  // same share them.
  virtual size_t available(Memory memory) const = 0;
  // Device memory is host memory: a copy from one to the other brings nothing nearer.
  virtual bool is_host() const = 0;
  // `inline_work` runs work in the calling thread as it is enqueued: for the lane that the caller
  // would only wait for.
  virtual std::unique_ptr<Stream> make_stream(std::string_view lane, bool inline_work) = 0;
  virtual std::unique_ptr<Event> make_event() = 0;
  virtual Ops& ops() = 0;
  // What keys and values are kept in unless a run says otherwise: 16 bits that products are fast
  // in.
  virtual DType cache_type() const { return DType::bf16; }
};

struct InstructionPath {
  std::string_view name;
  bool automatic;  // else it is used only where it is asked for by name
};

struct Backend {
  std::string_view name;
  int preference;  // the highest usable one is the default
  // "" where it can be used; else one line that says why not, for people. Never throws.
  std::string (*trouble)();
  std::unique_ptr<Device> (*open)(const DeviceOptions&);
  // Instruction paths it can use on this machine, ascending; null where there is no such choice.
  std::vector<InstructionPath> (*paths)() = nullptr;
  // One line about each device it could open, by index; null where there is only the machine
  // itself.
  std::vector<std::string> (*devices)() = nullptr;

  bool usable() const { return trouble().empty(); }
};

}  // namespace hydrant
