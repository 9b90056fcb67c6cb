// What a call refuses with.
#pragma once
#include <string>

#include "runtime/base/error.hpp"

namespace hydrant::test {

// The message with which `call` fails with `fault`; else a text that says what happened instead.
// Messages are one line each.
template <class Call>
std::string refusal(Fault fault, Call&& call) {
  try {
    call();
  } catch (const Error& e) {
    const std::string text = e.what();
    if (e.fault() != fault) return fmt::format("another fault ({}): {}", int(e.fault()), text);
    if (text.find('\n') != text.npos) return "more than one line: " + text;
    return text;
  }
  return "nothing was refused";
}

}  // namespace hydrant::test
