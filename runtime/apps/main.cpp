#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "runtime/apps/check_config.hpp"
#include "runtime/apps/command.hpp"
#include "runtime/apps/command_line.hpp"
#include "runtime/apps/figures.hpp"
#include "runtime/apps/interrupt.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/log.hpp"

namespace hydrant {
namespace {

// A file opened while a standard stream is closed would take its number, and what is meant for the
// stream would go into the file. The number is taken by something that refuses such use.
void occupy_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0)
      (void)::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int run_command(const CommandLine& line) {
  const RunConfig& config = line.config;
  switch (line.command) {
    case Command::generate:
      return run_generate(config, line.sources);
    case Command::score:
      return run_score(config, line.sources);
    case Command::tokenize:
      return run_tokenize(config, line.sources);
    case Command::inspect:
      return run_inspect(config, line.sources);
    case Command::bench:
      return run_bench(config, line.sources);
    case Command::validate:
      return run_validate(config, line.sources);
    case Command::profile:
      return run_profile(config, line.sources);
    case Command::plan:
      return run_plan(config, line.sources);
    case Command::count:
      break;
  }
  fail(Fault::internal, "a command that nothing runs");
}

// What a shell's `ulimit -v` has set.
std::string address_space_text() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "";
  return fmt::format(", which may map {} (ulimit -v)", bytes_text(limit.rlim_cur));
}

int run(int argc, char** argv) {
  const CommandLine line = parse_command_line(argc, argv);
  if (line.exit) return *line.exit;
  if (line.config.quiet) log::set_level(log::Level::none);
  check_config(line.config, line.sources, line.command);
  try {
    return run_command(line);
  } catch (const std::bad_alloc&) {
    fail(Fault::out_of_memory, "out of memory in {}{}: the system gave this process no more",
         name(line.command), address_space_text());
  }
}

// One line, whatever the message quotes.
int report(std::string_view what, Fault fault) {
  std::string line;
  for (const char c : what)
    line += c == '\n' ? "\\n" : static_cast<unsigned char>(c) < 32 ? "?" : std::string(1, c);
  line = fmt::format("hydrant: error: {}\n", line);
  std::fwrite(line.data(), 1, line.size(), stderr);  // where nobody listens, the exit code is left
  return exit_code(fault);
}

}  // namespace
}  // namespace hydrant

int main(int argc, char** argv) {
  using namespace hydrant;
  occupy_standard_streams();
  handle_signals();
  try {
    return run(argc, argv);
  } catch (const Error& e) {
    return report(e.what(), e.fault());
  } catch (const std::bad_alloc&) {
    return report("not enough memory", Fault::out_of_memory);
  } catch (const std::exception& e) {
    return report(e.what(), Fault::internal);
  }
}
