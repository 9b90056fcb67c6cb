// Going on with an interrupted job's output.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "runtime/apps/config_keys.hpp"
#include "runtime/apps/rows.hpp"

namespace hydrant {

// What a row of the results says of its configuration: all but how its file was opened, so that a
// job that was resumed has the rows of one that was not.
nlohmann::json row_config(const RunConfig& config, Command command);

// For the last line of an interrupted job.
std::string kept_after_interrupt(const RunConfig& config);

// Takes the requests out of the job whose rows are in config.output already. What is left there are
// whole rows without an error: a last line that was cut short or damaged and rows that failed are
// removed, to be tried again. Throws bad_config, and leaves the file as it is, when it holds
// something else: a row made with another configuration (naming the first key that differs) or from
// another prompt.
void leave_out_finished(Job& job, const RunConfig& config, const Sources& sources, Command command);

}  // namespace hydrant
