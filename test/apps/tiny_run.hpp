// A tiny model to run commands on, and what a refusal must look like.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "test/apps/process.hpp"
#include "test/apps/tiny_checkpoint.hpp"

namespace hydrant::test {

struct Tiny {
  explicit Tiny(const std::string& type = "F32") { write_tiny_checkpoint(model, type); }
  TemporaryFolder model, work;

  // Six tokens after each line's prompt, end of text ignored.
  Outcome generate(const std::string& lines, std::vector<std::string> more = {}) const;
};

// Refused by an exit code of its own, in one short message, not by a signal.
void check_refused(const Outcome& outcome, int code, const std::string& says);

std::map<std::string, Json> by_id(const std::vector<Json>& rows);  // the id as JSON text

}  // namespace hydrant::test
