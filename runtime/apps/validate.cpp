#include "runtime/apps/command.hpp"
#include "runtime/apps/config_file.hpp"
#include "runtime/apps/output.hpp"
#include "runtime/base/json.hpp"

namespace hydrant {

// The file has been read and checked; what is left is to show all of it.
int run_validate(const RunConfig& config, const Sources&) {
  Output("").write(effective_config(config, Command::validate).dump(2) + "\n");
  return 0;
}

}  // namespace hydrant
