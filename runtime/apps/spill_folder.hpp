// The folder of what a run puts on disk.
#pragma once
#include <cstddef>
#include <string>

#include "runtime/apps/run_config.hpp"

namespace hydrant {

std::string folder_of(const RunConfig& config);

// Why no file can be made there, beginning with the key; "" if one can.
std::string trouble_with_folder(const RunConfig& config, const Sources& sources);

// One line where the folder is memory itself, and `bytes` of a run go there.
void warn_of_folder_in_memory(const RunConfig& config, const Sources& sources, size_t bytes);

}  // namespace hydrant
