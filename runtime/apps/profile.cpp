#include <sys/utsname.h>

#include <ctime>
#include <filesystem>
#include <optional>

#include "offload/disk_file.hpp"
#include "runtime/apps/bandwidth.hpp"
#include "runtime/apps/command.hpp"
#include "runtime/apps/figures.hpp"
#include "runtime/apps/interrupt.hpp"
#include "runtime/apps/output.hpp"
#include "runtime/apps/profile_file.hpp"
#include "runtime/apps/progress.hpp"
#include "runtime/backends/registry.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/log.hpp"

namespace hydrant {
namespace {

// Steps that measure_*() announce; the bus is one more.
constexpr int kSteps = 20;

std::string date_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

std::string system_name() {
  struct utsname names {};
  ::uname(&names);
  return fmt::format("{} {}", names.sysname, names.release);
}

MachineRates measure(Device& device, const RunConfig& config, const File* stored,
                     DiskMeasure& disk) {
  Progress bar("measuring", config.quiet);
  const int steps = kSteps + (device.is_host() ? 0 : 1);
  int step = 0;
  const Measuring measuring = [&](const std::string& what) {
    if (interrupted()) throw Interrupted{};
    bar.show(double(step++) / steps, what);
  };
  MachineRates rates;
  rates.device = device.name();
  rates.isa = device.isa();
  rates.processor = processor_name();
  rates.threads = device.threads();
  rates.cores = open_device(config.device, {0, config.isa})->threads();
  measuring("memory");
  rates.memory = memory_bandwidth(device);
  measure_copies(device, rates, measuring);
  measure_bus(device, rates, measuring);
  measure_products(device, rates, measuring);
  measure_attention(device, rates, measuring);
  measure_logits(device, rates, measuring);
  disk = measure_disk(device, config.profile.folder, stored, rates, measuring);
  measure_steps(device, rates, measuring);
  return rates;
}

}  // namespace

int run_profile(const RunConfig& config, const Sources& sources) {
  if (!config.profile.output.empty())
    check_writable(config.profile.output, sources.name("profile.output"));
  if (!std::filesystem::is_directory(config.profile.folder))
    fail(Fault::bad_config, "{}: {} is no folder", sources.name("profile.folder"),
         config.profile.folder);
  SpillFile(config.profile.folder, File::kBlock, Caching::cached, "measuring the disk");
  std::optional<File> stored;
  if (!config.model.empty()) stored.emplace(largest_file(config.model));
  const auto device = open_device(config);
  log::info("measuring {}; other work on the machine makes it slower", device->describe());
  const Interruptible interruptible;
  ProfileOrigin origin{date_now(), device->describe(), system_name(), {}};
  try {
    const MachineRates rates = measure(*device, config, stored ? &*stored : nullptr, origin.disk);
    const auto large = [](const DiskRates& r, double under_way) {
      return double(kLargeRequest) / r.seconds(1, double(kLargeRequest), under_way) / 1e9;
    };
    const std::string text = profile_text(rates, origin);
    if (config.profile.output.empty())
      Output("").write(text);
    else
      write_file(config.profile.output, text);
    if (!origin.disk.direct)
      log::warning("{}: its file system has no direct reads: the page cache took part",
                   origin.disk.folder);
    log::info(
        "memory {:.1f} GB/s, copies {:.1f} GB/s, reads of a MiB {:.2f} GB/s, with four under way "
        "{:.2f} GB/s, writes {:.2f} GB/s, a small read {:.0f} us, fork and join {:.1f} us",
        rates.memory / 1e9, rates.copy.at(1) / 1e9, large(rates.disk_read, 1),
        large(rates.disk_read, 4), large(rates.disk_write, 4),
        rates.disk_read.seconds(1, double(kSmallRequest), 1) * 1e6, rates.fork_join * 1e6);
  } catch (const Interrupted&) {
    log::warning("interrupted; nothing is written");
    return kInterrupted;
  }
  return 0;
}

}  // namespace hydrant
