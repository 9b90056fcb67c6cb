#include "runtime/apps/check_output.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "runtime/apps/bench_report.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/file.hpp"
#include "runtime/base/json.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/trace.hpp"

namespace hydrant {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLongest = uint64_t{256} << 20;  // of a row, and of a document of results

// A file that cannot be looked at is named when it is opened.
bool is_file(const std::string& path) {
  std::error_code unreadable;
  return fs::is_regular_file(path, unreadable);
}
bool is_empty(const std::string& path) {
  std::error_code unreadable;
  return fs::file_size(path, unreadable) == 0;
}
bool same_file(const std::string& a, const std::string& b) {
  std::error_code unreadable;
  return is_file(a) && fs::equivalent(a, b, unreadable);
}

// By its own name or by where a link leads.
bool lies_in(const fs::path& file, const std::string& folder) {
  std::error_code unreadable;
  const fs::path outer = fs::canonical(folder, unreadable);
  if (unreadable || !fs::is_directory(outer)) return false;
  const fs::path parent = file.parent_path().empty() ? "." : file.parent_path();
  for (const fs::path& inner :
       {fs::canonical(file, unreadable), fs::canonical(parent, unreadable) / file.filename()})
    if (std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end())
      return true;
  return false;
}

// Special files (/dev/null) may be input and output.
void refuse_input(const std::string& output, const std::string& key, const RunConfig& config,
                  const Sources& sources) {
  const std::pair<std::string, const std::string*> inputs[] = {
      {sources.name("prompts"), &config.prompts},
      {sources.name("input"), &config.input},
      {sources.name("perplexity"), &config.perplexity},
      {sources.name("bench.text"), &config.bench.text},
      {sources.name("bench.profile"), &config.bench.profile},
      {sources.name("plan.profile"), &config.plan.profile},
      {sources.name("model"), &config.model},
      {"--config", &sources.file()}};
  for (const auto& [name, input] : inputs)
    if (same_file(*input, output))
      fail(Fault::bad_config, "{}: {} is also what {} names", key, output, name);
}

bool has_all(const Json& object, std::initializer_list<const char*> keys) {
  return std::all_of(keys.begin(), keys.end(), [&](const char* k) { return object.contains(k); });
}

// As generate, score, score --perplexity and tokenize write them, and any command a line that
// failed.
bool is_row(const Json& row) {
  if (!row.is_object()) return false;
  const bool configured = row.contains("config") && row["config"].is_object();
  return (configured && has_all(row, {"id", "token_ids"})) ||
         (configured && has_all(row, {"file", "perplexity"})) ||
         (row.size() == 3 && has_all(row, {"id", "token_ids", "decoded"})) ||
         (row.size() == 3 && has_all(row, {"id", "line", "error"}));
}

// What a file begins with: its first line if that may be JSON, else its first bytes.
std::string beginning(const std::string& path) {
  constexpr size_t kGlance = 64;
  std::ifstream in(path, std::ios::binary);
  std::string text;
  for (char c = 0; in.get(c) && c != '\n' && text.size() < kLongest;) {
    text += c;
    if (text.front() != '{' && text.size() == kGlance) break;
  }
  return text;
}

bool is_json(const std::string& text, bool (*fits)(const Json&)) {
  try {
    return fits(parse_json(text, ""));
  } catch (const Error&) {
    return false;
  }
}

void refuse_foreign(const std::string& path, const std::string& key, const RunConfig& config,
                    const char* kind, bool (*is_kind)(const std::string& path)) {
  if (!is_file(path)) return;
  if (lies_in(path, config.model))
    fail(Fault::bad_config, "{}: {} is not replaced: it lies in the model's folder", key, path);
  if (!is_empty(path) && !is_kind(path))
    fail(Fault::bad_config, "{}: {} is not replaced: it is not {} of hydrant, it begins with {}",
         key, path, kind, shown(beginning(path).substr(0, 40)));
}

bool holds_rows(const std::string& path) { return is_json(beginning(path), is_row); }

bool holds_json(const std::string& path, bool (*fits)(const Json&)) {
  if (!beginning(path).starts_with('{')) return false;
  std::error_code unreadable;
  if (fs::file_size(path, unreadable) > kLongest) return false;
  return is_json(read_text(path, kLongest), fits);
}

bool holds_document(const std::string& path) {
  return holds_json(path, [](const Json& doc) {
    return doc.is_object() && has_all(doc, {"version", "model", "device", "config", "rows"});
  });
}

bool holds_profile(const std::string& path) {
  return holds_json(path, [](const Json& doc) {
    return doc.is_object() && has_all(doc, {"kind", "format_version", "machine", "products"});
  });
}

bool holds_plan(const std::string& path) {
  return holds_json(path, [](const Json& doc) {
    return doc.is_object() && has_all(doc, {"placement", "batch", "bench", "plan"});
  });
}

bool holds_trace(const std::string& path) { return beginning(path).starts_with(trace::kBeginning); }

bool holds_table(const std::string& path) { return beginning(path).starts_with(kCsvBeginning); }

// Only a job of many lines can be gone on with.
bool can_resume(const RunConfig& config, Command command) {
  return command == Command::generate ? !config.prompt
                                      : command == Command::score && config.perplexity.empty();
}

// Hours of work may lie in it.
void refuse_existing(const RunConfig& config, const Sources& sources, Command command) {
  const bool resumes = can_resume(config, command);
  if ((config.resume && resumes) || config.overwrite || !is_file(config.output) ||
      is_empty(config.output))
    return;
  fail(Fault::bad_config, "{}: {} is there and not empty; {}--overwrite replaces it",
       sources.name("output"), config.output, resumes ? "--resume goes on with it, " : "");
}

}  // namespace

void check_output(const RunConfig& config, const Sources& sources, Command command) {
  if (config.output.empty()) {
    if (config.resume && can_resume(config, command))
      fail(Fault::bad_config, "{}: needs --output", sources.name("resume"));
    if (config.overwrite)
      log::warning("{} has no effect without --output", sources.name("overwrite"));
    return;
  }
  refuse_input(config.output, sources.name("output"), config, sources);
  refuse_existing(config, sources, command);
  if (config.overwrite)
    refuse_foreign(config.output, sources.name("overwrite"), config, "results", holds_rows);
}

void check_bench_output(const RunConfig& config, const Sources& sources) {
  const std::string &json = config.bench.json, &csv = config.bench.csv;
  const std::string json_key = sources.name("bench.json"), csv_key = sources.name("bench.csv");
  std::error_code unreadable;
  if (!json.empty() &&
      fs::weakly_canonical(json, unreadable) == fs::weakly_canonical(csv, unreadable))
    fail(Fault::bad_config, "{}: {} is also what {} names", csv_key, csv, json_key);
  for (const auto& [path, key] : {std::pair(&json, &json_key), std::pair(&csv, &csv_key)})
    refuse_input(*path, *key, config, sources);
  refuse_foreign(json, json_key, config, "a document of results", holds_document);
  refuse_foreign(csv, csv_key, config, "a table of results", holds_table);
}

void check_trace_output(const RunConfig& config, const Sources& sources) {
  const std::string key = sources.name("trace");
  refuse_input(config.trace, key, config, sources);
  refuse_foreign(config.trace, key, config, "a trace", holds_trace);
}

void check_profile_output(const RunConfig& config, const Sources& sources) {
  const std::string &path = config.profile.output, key = sources.name("profile.output");
  refuse_input(path, key, config, sources);
  refuse_foreign(path, key, config, "a profile", holds_profile);
}

void check_plan_output(const RunConfig& config, const Sources& sources) {
  const std::string &path = config.plan.output, key = sources.name("plan.output");
  refuse_input(path, key, config, sources);
  refuse_foreign(path, key, config, "a plan", holds_plan);
}

}  // namespace hydrant
