// Every configuration key once: its JSON path, its flag, what it may hold, what it means and which
// commands use it. Files, flags, --help, `validate`, the printed effective configuration and
// configs/schema/run.json all follow this list.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "runtime/apps/run_config.hpp"

namespace hydrant {

enum class Command : uint8_t {
  generate,
  score,
  tokenize,
  inspect,
  bench,
  validate,
  profile,
  plan,
  count
};
std::string_view name(Command command);

// A set of commands.
class Commands {
 public:
  template <class... C>
  constexpr explicit Commands(C... command) : bits_(((1u << unsigned(command)) | ... | 0u)) {}
  constexpr bool has(Command command) const { return (bits_ >> unsigned(command)) & 1u; }

 private:
  unsigned bits_;
};

struct Key {
  std::string path;   // "cache.heavy"
  std::string flag;   // "--heavy"
  std::string value;  // what the flag takes: "SLOTS"; empty: a switch
  std::string help;
  Commands commands;
  Commands files_only = Commands();  // of them: where another key has the flag
  bool repeatable = false;           // the flag may be given several times
  bool same_rows = false;            // a row of the results is the same whatever it says
  // Throws bad_config "WHERE: must be RULE, not VALUE".
  std::function<void(RunConfig&, const nlohmann::json&, const std::string& where)> read;
  std::function<nlohmann::json(const RunConfig&)> write;
  // A flag's text(s) as the JSON value it stands for; text that cannot be one stays a string.
  std::function<nlohmann::json(const std::vector<std::string>&)> from_flag;
};

const std::vector<Key>& config_keys();

}  // namespace hydrant
