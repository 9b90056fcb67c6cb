#include "test/apps/process.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/base/file.hpp"

namespace hydrant::test {
namespace {

// Only async-signal-safe calls: between fork and exec.
[[noreturn]] void exec(const Start& start, std::vector<char*>& argv, const char* in,
                       const char* out, const char* err) {
  ::dup2(::open(in, O_RDONLY), STDIN_FILENO);
  ::dup2(::open(err, O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
  int pipe[2];
  switch (start.out) {
    case Stdout::captured:
      ::dup2(::open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
      break;
    case Stdout::all_full:
      ::dup2(::open("/dev/full", O_WRONLY), STDERR_FILENO);
      [[fallthrough]];
    case Stdout::full:
      ::dup2(::open("/dev/full", O_WRONLY), STDOUT_FILENO);
      break;
    case Stdout::broken_pipe:
      if (::pipe(pipe) != 0) ::_exit(126);
      ::close(pipe[0]);
      ::dup2(pipe[1], STDOUT_FILENO);
      break;
    case Stdout::all_closed:
      ::close(STDIN_FILENO);
      ::close(STDERR_FILENO);
      [[fallthrough]];
    case Stdout::closed:
      ::close(STDOUT_FILENO);
      break;
  }
  for (const std::string& variable : start.environment)
    ::putenv(const_cast<char*>(variable.c_str()));
  const auto limit = [](auto what, uint64_t bytes) {
    const struct rlimit most { bytes, bytes };
    if (bytes > 0 && ::setrlimit(what, &most) != 0) ::_exit(126);
  };
  limit(RLIMIT_AS, start.address_space);
  limit(RLIMIT_FSIZE, start.file_size);
  ::execv(argv.front(), argv.data());
  ::_exit(127);
}

std::string text_of(const std::string& path) {
  return std::filesystem::exists(path) ? read_text(path) : "";
}

}  // namespace

std::vector<Json> json_lines(const std::string& text) {
  std::vector<Json> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) rows.push_back(Json::parse(line));
  return rows;
}

std::vector<Json> Outcome::rows() const { return json_lines(out); }

Process::Process(const Start& start) {
  folder_ = (std::filesystem::temp_directory_path() / "hydrant-run-XXXXXX").string();
  if (!::mkdtemp(folder_.data())) throw std::filesystem::filesystem_error("mkdtemp", {});
  std::ofstream(scratch("in"), std::ios::binary) << start.input;
  std::vector<std::string> arguments{HYDRANT_BINARY};
  arguments.insert(arguments.end(), start.arguments.begin(), start.arguments.end());
  std::vector<char*> argv;
  for (std::string& a : arguments) argv.push_back(a.data());
  argv.push_back(nullptr);
  const std::string in = scratch("in"), out = scratch("out"), err = scratch("err");
  pid_ = ::fork();
  if (pid_ == 0) exec(start, argv, in.c_str(), out.c_str(), err.c_str());
}

Process::~Process() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void Process::interrupt() { ::kill(pid_, SIGINT); }

Outcome Process::wait() {
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  Outcome outcome;
  if (WIFEXITED(status)) outcome.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  outcome.out = text_of(scratch("out"));
  outcome.err = text_of(scratch("err"));
  return outcome;
}

Outcome hydrant_run(std::vector<std::string> arguments, const std::string& input, Stdout out) {
  return Process({std::move(arguments), input, out, {}}).wait();
}

}  // namespace hydrant::test
