#include "runtime/apps/config_file.hpp"

#include <set>

#include "runtime/apps/json_text.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/file.hpp"
#include "runtime/base/json.hpp"

namespace hydrant {
namespace {

constexpr std::string_view kSchema = "$schema";  // editors put it there for themselves

const Key* find_key(const std::string& path) {
  for (const Key& key : config_keys())
    if (key.path == path) return &key;
  return nullptr;
}

// "cache" of "cache.heavy", "" of "seed".
std::string section_of(const std::string& path) {
  const size_t dot = path.find('.');
  return dot == path.npos ? "" : path.substr(0, dot);
}

bool is_section(const std::string& name) {
  for (const Key& key : config_keys())
    if (section_of(key.path) == name) return true;
  return false;
}

// The same word where it belongs, or the nearest word in the same place.
std::string nearest(const std::string& path) {
  const std::string section = section_of(path);
  std::set<std::string> siblings;
  for (const Key& key : config_keys()) {
    const std::string its_section = section_of(key.path);
    if (key.path.substr(key.path.find('.') + 1) == path.substr(path.find('.') + 1))
      return fmt::format(" (did you mean '{}'?)", key.path);
    if (its_section == section) siblings.insert(key.path);
    if (section.empty() && !its_section.empty()) siblings.insert(its_section);
  }
  return suggestion(path, siblings);
}

void read_object(const Json& object, const std::string& section, const std::string& name,
                 RunConfig& config, Sources& sources) {
  for (const auto& [word, value] : object.items()) {
    if (section.empty() && word == kSchema) continue;
    const std::string path = section.empty() ? word : section + "." + word;
    const std::string where = name + ": " + path;
    const bool inner = section.empty() && value.is_object() && is_section(word);
    if (const Key* key = inner ? nullptr : find_key(path)) {
      key->read(config, value, where);
      sources.add(path, where);
    } else if (section.empty() && is_section(word)) {
      if (!value.is_object())
        fail(Fault::bad_config, "{}: must be an object of keys, not {}", where, value.type_name());
      read_object(value, word, name, config, sources);
    } else {
      fail(Fault::bad_config, "{}: unknown key{}", where, nearest(path));
    }
  }
}

}  // namespace

void read_config(const Json& document, const std::string& name, RunConfig& config,
                 Sources& sources) {
  if (!document.is_object())
    fail(Fault::bad_config, "{}: must be an object of keys, not {}", name, document.type_name());
  read_object(document, "", name, config, sources);
}

void read_config_file(const std::string& path, RunConfig& config, Sources& sources) {
  constexpr uint64_t kLargest = 1 << 20;
  sources.set_file(path);
  read_config(parse_json(read_text(path, kLargest), path, Fault::bad_config, Numbers::as_written),
              path, config, sources);
}

void read_flag(const Key& key, const std::vector<std::string>& texts, RunConfig& config,
               Sources& sources) {
  key.read(config, key.from_flag(texts), key.flag);
  sources.add(key.path, key.flag);
}

Json effective_config(const RunConfig& config, Command command, Shown which) {
  const RunConfig unasked;
  Json document = Json::object();
  for (const Key& key : config_keys()) {
    if (command != Command::validate && !key.commands.has(command)) continue;
    Json value = key.write(config);
    if (value.is_null() || (which == Shown::changed && value == key.write(unasked))) continue;
    const std::string section = section_of(key.path);
    if (section.empty())
      document[key.path] = std::move(value);
    else
      document[section][key.path.substr(section.size() + 1)] = std::move(value);
  }
  return document;
}

}  // namespace hydrant
