#include "runtime/apps/spill_folder.hpp"

#include <filesystem>

#include "offload/disk_file.hpp"
#include "runtime/base/error.hpp"

namespace hydrant {
std::string folder_of(const RunConfig& config) {
  return config.memory.folder.empty() ? CacheOffload().folder : config.memory.folder;
}

std::string trouble_with_folder(const RunConfig& config, const Sources& sources) {
  const std::string folder = folder_of(config), key = sources.name("memory.folder");
  std::error_code absent;
  if (!std::filesystem::is_directory(folder, absent))
    return fmt::format("{}: {} is not a folder", key, folder);
  const std::string why = SpillFile::trouble(folder);
  return why.empty() ? "" : fmt::format("{}: no file can be made in {}: {}", key, folder, why);
}

}  // namespace hydrant
