#include <filesystem>

#include "runtime/apps/command.hpp"
#include "runtime/apps/config_file.hpp"
#include "runtime/apps/output.hpp"
#include "runtime/apps/rows.hpp"
#include "runtime/base/json.hpp"
#include "runtime/base/log.hpp"

namespace hydrant {
namespace {

// What generate would refuse before it reads a weight. The file may be meant for another machine:
// a model that is not here is none of its mistakes.
void check_with_model(const RunConfig& config, const Sources& sources) {
  if (!sources.given("model")) return;
  std::error_code unreadable;
  if (!std::filesystem::exists(config.model, unreadable))
    return log::warning("{}: {} is not here; what depends on it has not been checked",
                        sources.name("model"), config.model);
  const Model model = open_described_model(config, sources);
  const auto tokenizer = open_tokenizer(model.files);
  const PromptMaker maker = prompt_maker(*tokenizer, config, sources, model);
  if (config.prompt && *config.prompt != "-") generate_job(maker, sources);
}

}  // namespace

// The file has been read and its keys have been checked; what is left is to show all of it.
int run_validate(const RunConfig& config, const Sources& sources) {
  check_with_model(config, sources);
  Output("").write(effective_config(config, Command::validate).dump(2) + "\n");
  return 0;
}

}  // namespace hydrant
