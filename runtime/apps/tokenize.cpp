#include "runtime/apps/assemble.hpp"
#include "runtime/apps/command.hpp"
#include "runtime/apps/input.hpp"
#include "runtime/apps/output.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/json.hpp"
#include "runtime/base/log.hpp"

namespace hydrant {

// {"id", "text", "add_special"} -> {"id", "token_ids", "decoded"}
int run_tokenize(const RunConfig& config, const Sources&) {
  using OrderedJson = nlohmann::ordered_json;
  const std::string input = read_input(config.input);
  const ModelFiles files = open_model(config.model);
  const auto tokenizer = open_tokenizer(files);
  Output out(config.output, config.overwrite);
  const auto answer = [&](OrderedJson json) {
    out.line(json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace));
  };
  size_t failed = 0;
  const auto lines = read_lines(input, [&](InputLine& line, Fields& fields) {
    const auto text = fields.text("text");
    const bool special = fields.toggle("add_special").value_or(true);
    fields.finish();
    if (!text) fail(Fault::bad_input, "text: is needed");
    const std::vector<int32_t> ids = tokenizer->encode(*text, special);
    answer({{"id", OrderedJson::parse(line.id)},
            {"token_ids", ids},
            {"decoded", tokenizer->decode(ids, /*skip_special=*/true)}});
  });
  for (const InputLine& line : lines) {
    if (line.error.empty()) continue;
    failed++;
    answer({{"id", OrderedJson::parse(line.id)}, {"line", line.number}, {"error", line.error}});
  }
  out.close();
  if (lines.empty()) log::warning("{}: no lines", input_name(config.input));
  if (failed > 0) log::warning("{}", failure_line(lines, failed));
  return failed > 0 ? 1 : 0;
}

}  // namespace hydrant
