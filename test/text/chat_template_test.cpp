#include "runtime/text/chat_template.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "runtime/base/error.hpp"
#include "runtime/base/file.hpp"
#include "runtime/base/json.hpp"

using namespace hydrant;
using namespace hydrant::text;
using Catch::Contains;

namespace {

ChatSource source(std::string text) { return {"model.gguf", std::move(text), "<s>", "</s>"}; }

std::string render(std::string text, std::vector<Message> messages = {{"user", "Hi"}}) {
  return ChatTemplate(source("{# <|im_start|> #}" + std::move(text))).render(messages);
}

}  // namespace

// Written by jinja2, scripts/make_chat_goldens.py.
TEST_CASE("chat templates render as jinja2 does") {
  const Json models = Json::parse(read_text(HYDRANT_TEST_DIR "/text/data/chat.json"));
  REQUIRE(models.size() >= 8);
  for (const Json& model : models) {
    const ChatTemplate chat({model["model"], model["template"], model["bos"], model["eos"]});
    CHECK(chat.name() == model["name"].get<std::string>());
    for (const Json& c : model["cases"]) {
      INFO(model["model"] << " " << c["messages"]);
      std::vector<Message> messages;
      for (const Json& m : c["messages"]) messages.push_back({m["role"], m["content"]});
      if (c["text"].is_null()) {
        CHECK_THROWS_WITH(chat.render(messages), Contains("refuses the conversation"));
      } else {
        CHECK(chat.render(messages) == c["text"].get<std::string>());
      }
    }
  }
}

TEST_CASE("an unknown chat template is refused with its beginning") {
  CHECK_THROWS_WITH(ChatTemplate(source("{{ bos_token }}<start_of_turn>\n" + std::string(90, 'x'))),
                    Contains("model.gguf") && Contains("Zephyr") &&
                        Contains("{{ bos_token }}<start_of_turn>\\nxxx"));
}

TEST_CASE("what a chat template needs and is not supported is named") {
  CHECK_THROWS_WITH(render("{% macro f() %}{% endmacro %}"), Contains("\"macro\""));
  CHECK_THROWS_WITH(render("{{ messages | tojson }}"), Contains("\"tojson\""));
  CHECK_THROWS_WITH(render("{{ range(3) }}"), Contains("\"range\""));
  CHECK_THROWS_WITH(render("{{ messages[0].content.encode() }}"), Contains("\"encode\""));
  CHECK_THROWS_WITH(render("{{ messages }}"), Contains("printing a list"));
  CHECK_THROWS_WITH(render("{{ nothing.at_all }}"), Contains("undefined"));
  CHECK_THROWS_WITH(render("{% for m in messages %}"), Contains("without its end"));
  CHECK_THROWS_WITH(render("{% endif %}"), Contains("\"endif\""));
  CHECK_THROWS_WITH(render("{{ 'a"), Contains("does not end"));
  CHECK_THROWS_WITH(render("{{ 1 +"), Contains("does not end"));
  CHECK_THROWS_WITH(render("{{ 1 + }}"), Contains("not understood"));
  CHECK_THROWS_WITH(render("{{ " + std::string(500, '(') + "1" + std::string(500, ')') + "}}"),
                    Contains("too deep"));
  CHECK_THROWS_WITH(render("{{ " + std::string(5000, '-') + "1 }}"), Contains("too deep"));
  std::string loops, ends;
  for (int i = 0; i < 40; ++i) {
    loops += "{% for m in messages %}";
    ends += "{% endfor %}";
  }
  CHECK_THROWS_WITH(render(loops + "x" + ends, {{"user", "a"}, {"assistant", "b"}, {"user", "c"}}),
                    Contains("steps"));
}

TEST_CASE("the chat template comes from the model's folder") {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / "hydrant_chat_template_test";
  fs::remove_all(folder);
  fs::create_directories(folder);
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream(folder / name) << text;
  };
  CHECK_FALSE(read_chat_source(folder.string()));

  write("tokenizer_config.json", R"({"bos_token": {"content": "<s>"}, "eos_token": "</s>"})");
  CHECK_FALSE(read_chat_source(folder.string()));

  write("tokenizer_config.json",
        R"({"bos_token": {"content": "<s>"}, "eos_token": null, "chat_template": "one"})");
  auto found = read_chat_source(folder.string());
  REQUIRE(found);
  CHECK(found->text == "one");
  CHECK(found->bos == "<s>");
  CHECK(found->eos.empty());

  write("tokenizer_config.json",
        R"({"chat_template": [{"name": "tool_use", "template": "t"},
                              {"name": "default", "template": "d"}]})");
  CHECK(read_chat_source(folder.string())->text == "d");

  write("chat_template.jinja", "own");
  CHECK(read_chat_source(folder.string())->text == "own");

  write("tokenizer_config.json", R"({"chat_template": 7})");
  CHECK_THROWS_WITH(read_chat_source(folder.string()),
                    Contains("tokenizer_config.json: chat_template: expected a string, found 7"));
  write("tokenizer_config.json", "{");
  CHECK_THROWS_WITH(read_chat_source(folder.string()), Contains("tokenizer_config.json"));
  fs::remove_all(folder);
}
