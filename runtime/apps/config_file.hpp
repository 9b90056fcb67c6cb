// Configuration files and flags -> RunConfig, and back to JSON.
#pragma once
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "runtime/apps/config_keys.hpp"
#include "runtime/apps/run_config.hpp"

namespace hydrant {

// Reads every key of the document into `config`. Throws bad_config "NAME: cache.heavy: must be ..."
// for the first key that is unknown (naming the nearest known one), of a wrong type or impossible.
// "$schema" at the top, which editors look for, is passed over.
void read_config(const nlohmann::json& document, const std::string& name, RunConfig& config,
                 Sources& sources);
void read_config_file(const std::string& path, RunConfig& config, Sources& sources);

// A flag's text(s).
void read_flag(const Key& key, const std::vector<std::string>& texts, RunConfig& config,
               Sources& sources);

enum class Shown { all, changed };  // changed: what is not as it would be unasked
// All keys that the command uses, defaults filled in; for `validate` all that there are.
nlohmann::json effective_config(const RunConfig& config, Command command, Shown which = Shown::all);

}  // namespace hydrant
