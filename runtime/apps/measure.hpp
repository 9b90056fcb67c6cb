// Measuring what a machine takes, for `hydrant profile`.
#pragma once
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "offload/machine_rates.hpp"
#include "runtime/base/file.hpp"
#include "runtime/device/device.hpp"

namespace hydrant {

// Says what is being measured; throws when the user has interrupted.
using Measuring = std::function<void(const std::string& what)>;

// The median of some passes, each of at least a few milliseconds, after one that warms up. `call`
// is given 0, 1, 2, ... from pass to pass.
double seconds_of_call(const std::function<void(size_t call)>& call);

double seconds_now();  // of a steady clock
double median(std::vector<double> values);

// Rounds over everything that is compared, so that a drift of the machine's speed meets all alike.
inline constexpr int kRounds = 3;

// Each fills in its part.
void measure_products(Device& device, MachineRates& rates, const Measuring& measuring);
void measure_attention(Device& device, MachineRates& rates, const Measuring& measuring);
void measure_logits(Device& device, MachineRates& rates, const Measuring& measuring);
void measure_steps(Device& device, MachineRates& rates, const Measuring& measuring);  // the last
void measure_copies(Device& device, MachineRates& rates, const Measuring& measuring);
// Nothing where device memory is host memory. now: seconds, from any beginning.
void measure_bus(Device& device, MachineRates& rates, const Measuring& measuring,
                 const std::function<double()>& now = seconds_now);

struct DiskMeasure {
  std::string folder;
  bool direct = true;  // false: its file system has no direct requests, so the page cache took part
  std::string file;    // of the model, whose reads were measured; "": none
};
// Two sizes tell what a request takes from what its bytes take.
inline constexpr size_t kLargeRequest = size_t{1} << 20;  // as weights are read
inline constexpr size_t kSmallRequest = size_t{4}
                                        << 10;  // as rows of tables are, and tails written
// Of a model, opened for direct reads, to measure them with. Throws bad_config naming --model when
// it is too small for that.
File largest_file(const std::string& model);
// stored: a model's file that is read as well, or null.
DiskMeasure measure_disk(Device& device, const std::string& folder, const File* stored,
                         MachineRates& rates, const Measuring& measuring);

}  // namespace hydrant
