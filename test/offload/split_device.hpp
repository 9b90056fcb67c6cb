// A device whose memory is not the host's, for all that anybody may do with it: the CPU's, but
// operations are held to the memory of their side. With it comes the second device on the host.
#pragma once
#include <fmt/format.h>

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "runtime/backends/registry.hpp"
#include "runtime/base/error.hpp"
#include "test/end_to_end/recording_ops.hpp"

namespace hydrant::test {

class SplitDevice final : public Device {
 public:
  // asynchronous: the compute lane, too, works on a thread of its own.
  explicit SplitDevice(bool asynchronous = false)
      : inner_(open_device("cpu", {2, ""})), asynchronous_(asynchronous), host_(*this) {}
  std::string_view name() const override { return "split"; }
  std::string describe() const override { return "split"; }
  std::string_view isa() const override { return inner_->isa(); }
  int threads() const override { return inner_->threads(); }
  Buffer allocate(Memory memory, size_t bytes, std::string_view what) override {
    if (bytes == 0) return {};
    if (memory == Memory::pinned && unpinned.contains(std::string(what)))
      fail(Fault::out_of_memory, "{}: {} bytes cannot be pinned", what, bytes);
    const auto owner = std::make_shared<Buffer>(inner_->allocate(memory, bytes, what));
    const auto at = reinterpret_cast<uintptr_t>(owner->data());
    const std::lock_guard lock(mutex_);  // several threads load weights
    taken[memory] += bytes;
    memory_[at] = {bytes, memory, std::string(what)};
    return {owner->data(), bytes, memory, [this, at, owner](void*, size_t) {
              const std::lock_guard release(mutex_);
              memory_.erase(at);
            }};
  }
  size_t available(Memory memory) const override { return inner_->available(memory); }
  bool is_host() const override { return false; }
  std::unique_ptr<Stream> make_stream(std::string_view lane, bool inline_work) override {
    return inner_->make_stream(lane, inline_work && !asynchronous_);
  }
  std::unique_ptr<Event> make_event() override { return inner_->make_event(); }
  Ops& ops() override { return *ops_; }

  Device& host() { return host_; }

  std::set<std::string> unpinned;  // what cannot be pinned
  // What the device's own kernels reach of the host's memory.
  std::set<std::string> reached{"inputs and logits of a step"};
  std::map<Memory, size_t> taken;   // bytes, ever
  std::vector<std::string> strays;  // operations that have touched what is not their side's
  int64_t attended_on_host = 0;     // operations
  int64_t operations_on_host = 0;   // so far
  int64_t host_breaks_at = -1;      // the operation there that fails

 private:
  struct Allocation {
    size_t bytes;
    Memory memory;
    std::string what;
  };

  class Side final : public Watch {
   public:
    Side(SplitDevice& device, bool host) : device_(device), host_(host) {}
    void begins(Stream& stream, std::string_view operation) override {
      operation_ = operation;
      device_.attended_on_host += host_ && operation.starts_with("attend");
      if (host_ && device_.operations_on_host++ == device_.host_breaks_at)
        stream.fill(nullptr, 0, [] { fail(Fault::io, "the host is broken"); });
    }
    void touches(Stream&, const void* at, size_t bytes, bool) override {
      const Allocation* const a = device_.find(at, bytes);
      const bool ours =
          a && (host_ ? a->memory != Memory::device
                      : a->memory == Memory::device ||
                            (a->memory == Memory::pinned && device_.reached.contains(a->what)));
      if (!ours)
        device_.strays.push_back(fmt::format("{} on the {} touches {}", operation_,
                                             host_ ? "host" : "device",
                                             a ? a->what : "unknown memory"));
    }

   private:
    SplitDevice& device_;
    bool host_;
    std::string operation_;
  };

  class Host final : public Device {
   public:
    explicit Host(SplitDevice& device) : watch_(device, true) {}
    std::string_view name() const override { return "host"; }
    std::string describe() const override { return "host"; }
    std::string_view isa() const override { return inner_->isa(); }
    int threads() const override { return inner_->threads(); }
    Buffer allocate(Memory, size_t, std::string_view what) override {
      fail(Fault::internal, "{}: what crosses the bus is the device's to allocate", what);
    }
    size_t available(Memory memory) const override { return inner_->available(memory); }
    bool is_host() const override { return true; }
    std::unique_ptr<Stream> make_stream(std::string_view lane, bool inline_work) override {
      return inner_->make_stream(lane, inline_work);
    }
    std::unique_ptr<Event> make_event() override { return inner_->make_event(); }
    Ops& ops() override { return *ops_; }

   private:
    std::unique_ptr<Device> inner_ = open_device("cpu", {1, ""});
    Side watch_;
    std::unique_ptr<Ops> ops_ = recording_ops(watch_, &inner_->ops());
  };

  const Allocation* find(const void* at, size_t bytes) const {
    const auto begin = reinterpret_cast<uintptr_t>(at);
    const std::lock_guard lock(mutex_);
    auto a = memory_.upper_bound(begin);
    if (a == memory_.begin()) return nullptr;
    --a;
    return begin + bytes <= a->first + a->second.bytes ? &a->second : nullptr;
  }

  std::unique_ptr<Device> inner_;
  bool asynchronous_;
  mutable std::mutex mutex_;
  std::map<uintptr_t, Allocation> memory_;
  Side watch_{*this, false};
  std::unique_ptr<Ops> ops_ = recording_ops(watch_, &inner_->ops());
  Host host_;
};

}  // namespace hydrant::test
