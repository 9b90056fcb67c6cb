// The file that `hydrant profile` writes and `plan` and `bench` read.
#pragma once
#include <string>

#include "offload/machine_rates.hpp"
#include "runtime/apps/measure.hpp"
#include "runtime/device/device.hpp"

namespace hydrant {

// When and where it was measured.
struct ProfileOrigin {
  std::string date;  // "2026-11-30T12:00:00Z"
  std::string device_line, system;
  DiskMeasure disk;
};

std::string profile_text(const MachineRates& rates, const ProfileOrigin& origin);

// Throws bad_config naming the file and the key that is missing or wrong.
MachineRates read_profile(const std::string& path);

// One line when the profile is of another device, instruction path, processor or number of threads
// than what is to be predicted for.
void warn_of_other_machine(const MachineRates& rates, const std::string& path,
                           const Device& device);

std::string processor_name();  // "AMD EPYC"

}  // namespace hydrant
