#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <system_error>

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

// Lanes are threads, and the usual 8 MiB of addresses for the stack of each are more than a process
// under `ulimit -v` has to spare. Without the attribute they are as they were.
void keep_stacks_small() {
  constexpr size_t kStack = size_t{2} << 20;
  pthread_attr_t attributes;
  if (::pthread_attr_init(&attributes) != 0) return;
  if (::pthread_attr_setstacksize(&attributes, kStack) == 0)
    (void)::pthread_setattr_default_np(&attributes);
  ::pthread_attr_destroy(&attributes);
}

// For threads that wait for each other the allocator takes 64 MiB of addresses more. Nothing that
// is short of them can spare so many, and no step allocates: there they take turns.
void keep_arenas_few() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    (void)::mallopt(M_ARENA_MAX, 1);
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

// The only thing that the system refuses with this code is a thread.
bool is_lack_of_threads(const std::system_error& e) {
  return e.code() == std::errc::resource_unavailable_try_again;
}

void be_quiet() {
  log::set_level(log::Level::none);
  handle_signals(/*quiet=*/true);
}

int run(int argc, char** argv) {
  const CommandLine line = parse_command_line(argc, argv);
  if (line.exit) return *line.exit;
  if (line.config.quiet) be_quiet();
  check_config(line.config, line.sources, line.command);
  try {
    return run_command(line);
  } catch (const std::bad_alloc&) {
    fail(Fault::out_of_memory, "out of memory in {}{}: the system gave this process no more",
         name(line.command), address_space_text());
  } catch (const std::system_error& e) {
    if (!is_lack_of_threads(e)) throw;
    fail(Fault::out_of_memory,
         "a thread could not be started in {}: the system has no memory for its stack to give to "
         "this process{}, or lets this user have no more threads (ulimit -u)",
         name(line.command), address_space_text());
  }
}

int report(std::string_view what, Fault fault) {
  const std::string line = fmt::format("hydrant: error: {}\n", log::one_line(what));
  std::fwrite(line.data(), 1, line.size(), stderr);  // where nobody listens, the exit code is left
  return exit_code(fault);
}

}  // namespace
}  // namespace hydrant

int main(int argc, char** argv) {
  using namespace hydrant;
  occupy_standard_streams();
  keep_stacks_small();
  keep_arenas_few();
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
