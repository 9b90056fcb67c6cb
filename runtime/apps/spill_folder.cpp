#include "runtime/apps/spill_folder.hpp"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <filesystem>

#include "offload/disk_file.hpp"
#include "runtime/apps/figures.hpp"
#include "runtime/base/log.hpp"

namespace hydrant {
namespace {

// The name of a file system that keeps its files in memory; null: another one.
const char* memory_file_system(const std::string& folder) {
  struct statfs status {};
  if (::statfs(folder.c_str(), &status) != 0) return nullptr;
  return status.f_type == TMPFS_MAGIC ? "tmpfs" : status.f_type == RAMFS_MAGIC ? "ramfs" : nullptr;
}

}  // namespace

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

void warn_of_folder_in_memory(const RunConfig& config, const Sources& sources, size_t bytes) {
  const std::string folder = folder_of(config);
  const char* const kind = bytes > 0 ? memory_file_system(folder) : nullptr;
  if (kind)
    log::warning(
        "{}: {} is in memory ({}): the {} that go there are memory which memory.host does not cap",
        sources.name("memory.folder"), folder, kind, bytes_text(bytes));
}

}  // namespace hydrant
