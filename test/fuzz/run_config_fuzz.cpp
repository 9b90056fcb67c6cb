// Any bytes as a run configuration, and as lines of input: read, or refused by name; what is read
// says the same when written and read again.
#include <string_view>

#include "runtime/apps/check_config.hpp"
#include "runtime/apps/config_file.hpp"
#include "runtime/apps/input.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/json.hpp"
#include "runtime/base/log.hpp"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  hydrant::log::set_level(hydrant::log::Level::none);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hydrant;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  RunConfig config, again;
  Sources sources;
  try {
    read_config(parse_json(text, "run.json", Fault::bad_config, Numbers::as_written), "run.json",
                config, sources);
    const Json shown = effective_config(config, Command::validate);
    read_config(shown, "again", again, sources);
    ensure(effective_config(again, Command::validate) == shown, "it changed on the way");
    check_config(config, sources, Command::validate);
  } catch (const Error& e) {
    if (e.fault() != Fault::bad_config) throw;
  }
  read_lines(text, [](InputLine&, Fields& fields) {
    fields.text("prompt");
    fields.ids("prompt_token_ids");
    fields.texts("stop");
    fields.integer("max_new_tokens", 1, 100);
  });
  return 0;
}
