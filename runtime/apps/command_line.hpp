// argv -> command, configuration and where each part of it came from.
#pragma once
#include <optional>
#include <string>

#include "runtime/apps/config_keys.hpp"
#include "runtime/apps/run_config.hpp"

namespace hydrant {

struct CommandLine {
  Command command = Command::count;
  RunConfig config;
  Sources sources;
  std::optional<int> exit;  // --help or --version has been answered
};

// Flags win over --config. Throws bad_config for anything that is not understood, naming the
// nearest known word.
CommandLine parse_command_line(int argc, const char* const* argv);

}  // namespace hydrant
