// The hydrant binary, run as a user runs it.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

#include "runtime/base/json.hpp"

namespace hydrant::test {

using Words = std::vector<std::string>;  // of a command line

inline Words operator+(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

struct Outcome {
  int code = -1;   // exit code; -1 when a signal ended it
  int signal = 0;  // the signal, 0 for none
  std::string out, err;
  std::vector<Json> rows() const;  // standard output as JSON lines
};

enum class Stdout {
  captured,
  closed,
  all_closed,  // standard input and error too
  broken_pipe,
  full,     // /dev/full
  all_full  // standard error too
};

struct Start {
  Words arguments;
  std::string input;  // standard input
  Stdout out = Stdout::captured;
  std::vector<std::string> environment{};  // NAME=VALUE, beside our own
  uint64_t address_space = 0;              // bytes, as ulimit -v; 0: no limit
  uint64_t file_size = 0;                  // the same, as ulimit -f
};

// A running process; waited for when it goes out of scope.
class Process {
 public:
  explicit Process(const Start& start);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  void interrupt();
  Outcome wait();

 private:
  std::string scratch(const char* name) const { return folder_ + "/" + name; }
  std::string folder_;
  pid_t pid_ = -1;
};

Outcome hydrant_run(Words arguments, const std::string& input = "", Stdout out = Stdout::captured);
std::vector<Json> json_lines(const std::string& text);

}  // namespace hydrant::test
