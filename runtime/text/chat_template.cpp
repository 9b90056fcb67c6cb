#include "runtime/text/chat_template.hpp"

#include <filesystem>

#include "runtime/base/error.hpp"
#include "runtime/base/file.hpp"
#include "runtime/base/json.hpp"
#include "runtime/text/jinja/evaluate.hpp"
#include "runtime/text/jinja/syntax.hpp"
#include "runtime/text/json_view.hpp"

namespace hydrant::text {
namespace {

namespace fs = std::filesystem;

std::string token_text(const JsonView& token) {
  if (token.is_null()) return "";
  return token.is_object() ? token.member("content").string() : token.string();
}

// A template, or a list of {"name", "template"}.
std::optional<std::string> template_text(const JsonView& json) {
  if (!json.is_array()) return json.optional_string();
  std::optional<std::string> found;
  json.for_each([&](const JsonView& entry) {
    if (entry.member("name").string() == "default") found = entry.member("template").string();
  });
  if (!found) json.fail("none of the templates is called \"default\"");
  return found;
}

std::string_view recognise(const ChatSource& source) {
  const auto has = [&](std::string_view what) {
    return source.text.find(what) != std::string::npos;
  };
  if (has("<|im_start|>")) return "ChatML";
  if (has("<|start_header_id|>")) return "LLaMA-3";
  if (has("[INST]") && has("<<SYS>>")) return "LLaMA-2";
  if (has("<|user|>") && has("<|assistant|>") && (has("eos_token") || has("</s>"))) return "Zephyr";
  std::string start = source.text.substr(0, 60);
  while (!start.empty() && (start.back() & 0x80) != 0) start.pop_back();
  fail(Fault::bad_file,
       "{}: the chat template is none of ChatML, LLaMA-2, LLaMA-3, Zephyr; it begins {}",
       source.file, Json(start).dump());
}

}  // namespace

struct ChatTemplate::Parsed {
  std::vector<jinja::Node> nodes;
};

std::optional<ChatSource> read_chat_source(const std::string& folder) {
  const fs::path config_path = fs::path(folder) / "tokenizer_config.json";
  const fs::path own_path = fs::path(folder) / "chat_template.jinja";
  std::error_code ignored;
  ChatSource source;
  source.file = config_path.string();
  std::optional<std::string> text;
  if (fs::exists(config_path, ignored)) {
    const Json config = parse_json(read_text(source.file), source.file);
    const JsonView json(config, source.file, "");
    text = template_text(json.member("chat_template"));
    source.bos = token_text(json.member("bos_token"));
    source.eos = token_text(json.member("eos_token"));
  }
  if (fs::exists(own_path, ignored)) {
    source.file = own_path.string();
    text = read_text(source.file);
  }
  if (!text) return std::nullopt;
  source.text = std::move(*text);
  return source;
}

ChatTemplate::ChatTemplate(ChatSource source)
    : source_(std::move(source)),
      name_(recognise(source_)),
      parsed_(std::make_shared<const Parsed>(Parsed{jinja::parse(source_.text, source_.file)})) {}

bool ChatTemplate::has_role(std::string_view role) const {
  if (role == "system" || role == "user" || role == "assistant") return true;
  const auto spells = [&](char quote) {
    return source_.text.find(fmt::format("{0}{1}{0}", quote, role)) != std::string::npos;
  };
  return spells('\'') || spells('"');
}

std::string ChatTemplate::render(std::span<const Message> messages) const {
  Json list = Json::array();
  for (const Message& m : messages) list.push_back({{"role", m.role}, {"content", m.content}});
  const Json variables = {{"messages", std::move(list)}, {"bos_token", source_.bos},
                          {"eos_token", source_.eos},    {"tools", nullptr},
                          {"documents", nullptr},        {"add_generation_prompt", true}};
  return jinja::render(parsed_->nodes, variables, source_.file);
}

}  // namespace hydrant::text
