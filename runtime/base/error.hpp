// The one exception type of the project, and how to throw it.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace hydrant {

enum class Fault : uint8_t {
  bad_input,      // a prompt, request or argument
  bad_config,     // a key, flag or value; the message starts with the JSON path or flag
  bad_file,       // a model or data file; the message starts with its name
  out_of_memory,  // names what was asked for, its bytes and what is available
  io,             // the operating system refused or failed a read, write or device call
  internal,       // a broken promise inside the program
};

// `what()` is one line for the user: what is wrong, where, and what was expected.
class Error : public std::runtime_error {
 public:
  Error(Fault fault, const std::string& what) : std::runtime_error(what), fault_(fault) {}
  Fault fault() const { return fault_; }

 private:
  Fault fault_;
};

// Process exit codes: 0 done, 1 some rows failed, then by fault, 130 interrupted.
constexpr int exit_code(Fault fault) {
  switch (fault) {
    case Fault::bad_input:
    case Fault::bad_config:
    case Fault::bad_file:
      return 2;
    case Fault::out_of_memory:
      return 3;
    case Fault::io:
    case Fault::internal:
      return 4;
  }
  return 4;
}

template <class... Args>
[[noreturn]] void fail(Fault fault, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(fault, fmt::format(format, std::forward<Args>(args)...));
}

// For promises between parts of the program; bad input never ends here.
template <class... Args>
void ensure(bool holds, fmt::format_string<Args...> format, Args&&... args) {
  if (!holds) fail(Fault::internal, format, std::forward<Args>(args)...);
}

}  // namespace hydrant
