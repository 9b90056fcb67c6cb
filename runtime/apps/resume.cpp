#include "runtime/apps/resume.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "runtime/apps/config_file.hpp"
#include "runtime/apps/output.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/json.hpp"
#include "runtime/base/log.hpp"

namespace hydrant {
namespace {

// A key's value in an effective configuration; null where it has none.
Json value_at(const Json& config, const std::string& path) {
  const size_t dot = path.find('.');
  const Json outer = config.value(path.substr(0, dot), Json());
  if (dot == path.npos) return outer;
  return outer.is_object() ? outer.value(path.substr(dot + 1), Json()) : Json();
}

std::string shown_or_none(const Json& value) { return value.is_null() ? "none" : shown(value); }

// Reads an output line by line and sorts its rows.
class OldOutput {
 public:
  OldOutput(const RunConfig& config, const Sources& sources, Command command, const Job& job)
      : path_(config.output), now_(row_config(config, command)), command_(command), job_(job) {
    for (size_t i = 0; i < job.requests.size(); i++) requests_[job.lines[job.line_of[i]].id] = i;
    refused_ = fmt::format("{}: cannot go on with {}", sources.name("resume"), path_);
    const std::string text = read_input(path_);
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      const std::string_view body(text.data() + begin, end - begin);
      begin = end + 1;
      line_++;
      if (!was_cut(body, begin > text.size(), begin >= text.size())) read(body);
    }
    changed_ = kept_.size() != text.size();
  }

  const std::set<size_t>& finished() const { return finished_; }  // requests
  size_t foreign() const { return foreign_; }                     // rows of no line of the input
  void clean() const {
    if (changed_) write_file(path_, kept_);
  }

 private:
  // The last line is what an interrupted job may have left of a row: it has no end, or it is none.
  static bool was_cut(std::string_view body, bool endless, bool last) {
    if (!last || !body.starts_with(endless ? "{" : "{\"")) return false;
    if (endless) return true;
    try {
      parse_json(body, "");
      return false;
    } catch (const Error&) {
      return true;
    }
  }

  Json parsed(std::string_view body, const std::string& where) const {
    try {
      return parse_json(body, where, Fault::bad_config);
    } catch (const Error& e) {
      fail(Fault::bad_config, "{}; if the line is a damaged row, remove it: the row is run again",
           e.what());
    }
  }

  void read(std::string_view body) {
    const std::string where = fmt::format("{}: line {}", refused_, line_);
    const Json row = parsed(body, where);
    if (!row.is_object() || !row.contains("id"))
      fail(Fault::bad_config, "{} is no row of results", where);
    if (row.contains("error")) return;
    check_config(row, where);
    note(row, where);
    kept_.append(body) += '\n';
  }

  void check_config(const Json& row, const std::string& where) {
    const Json then = row.value("config", Json());
    if (!then.is_object()) fail(Fault::bad_config, "{} has no configuration", where);
    if (then == now_) return;
    for (const Key& key : config_keys()) {
      if (key.same_rows || !key.commands.has(command_)) continue;
      const Json before = value_at(then, key.path), after = value_at(now_, key.path);
      if (before != after)
        fail(Fault::bad_config, "{} was made with {} {}, now it is {}", where, key.path,
             shown_or_none(before), shown_or_none(after));
    }
  }

  void note(const Json& row, const std::string& where) {
    const auto at = requests_.find(row["id"].dump());
    if (at == requests_.end()) {
      foreign_++;
      return;
    }
    const char* key = command_ == Command::score ? "context_tokens" : "prompt_tokens";
    const Json tokens = row.value(key, Json());
    if (tokens != job_.requests[at->second].prompt.size())
      fail(Fault::bad_config, "{}: id {} has {} {}, in the input it has {}", where,
           shown(row["id"]), shown_or_none(tokens), key, job_.requests[at->second].prompt.size());
    finished_.insert(at->second);
  }

  std::string path_, refused_;
  Json now_;
  Command command_;
  const Job& job_;
  std::map<std::string, size_t> requests_;  // by id
  size_t line_ = 0, foreign_ = 0;
  std::set<size_t> finished_;
  std::string kept_;
  bool changed_ = false;
};

template <class T>
void erase(std::vector<T>& list, const std::set<size_t>& places) {
  std::vector<T> rest;
  for (size_t i = 0; i < list.size(); i++)
    if (!places.contains(i)) rest.push_back(std::move(list[i]));
  list = std::move(rest);
}

}  // namespace

Json row_config(const RunConfig& config, Command command) {
  Json document = effective_config(config, command);
  document.erase("resume");
  document.erase("overwrite");
  return document;
}

std::string kept_after_interrupt(const RunConfig& config) {
  const bool resumes = !config.output.empty() && !config.prompt;
  return fmt::format("finished rows are kept{}",
                     resumes ? ", the same command with --resume runs the others" : "");
}

void leave_out_finished(Job& job, const RunConfig& config, const Sources& sources,
                        Command command) {
  std::error_code absent;  // then nothing is finished; special files hold nothing
  if (!std::filesystem::is_regular_file(config.output, absent)) return;
  // Refused while another process writes it: what is put in its place would lack that one's rows.
  const Output held(config.output, /*emptied=*/false);
  const OldOutput old(config, sources, command, job);
  old.clean();
  log::info("{} of {} rows are in {} already", old.finished().size(), job.lines.size(),
            config.output);
  if (old.foreign() > 0)
    log::warning("{}: rows that are not in the input: {}; they stay", config.output, old.foreign());
  const std::set<size_t> finished = old.finished();
  erase(job.requests, finished);
  erase(job.line_of, finished);
  erase(job.stops, finished);
}

}  // namespace hydrant
