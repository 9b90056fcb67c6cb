// A conversation -> the text a chat model was trained on.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace hydrant::text {

struct Message {
  std::string role, content;  // "system" | "user" | "assistant"
};

// What a model's files say about its chats.
struct ChatSource {
  std::string file;      // for messages
  std::string text;      // the Jinja template
  std::string bos, eos;  // spelling of the tokens the template may name
};
// From chat_template.jinja or tokenizer_config.json (of a list of templates, the one called
// "default"); nothing if the folder has no template.
std::optional<ChatSource> read_chat_source(const std::string& folder);

// Recognises ChatML, LLaMA-2, LLaMA-3 and Zephyr by the tokens a template spells.
class ChatTemplate {
 public:
  explicit ChatTemplate(ChatSource source);  // throws bad_file: none of them, or bad syntax

  // The prompt for the assistant's next message, as Hugging Face renders the template. It spells
  // the special tokens itself: encode it with add_special = false. Throws bad_input where the
  // template refuses a conversation, bad_file where it needs what is not supported.
  std::string render(std::span<const Message> messages) const;
  // system, user and assistant, and whichever others the template spells.
  bool has_role(std::string_view role) const;
  std::string_view name() const { return name_; }  // "ChatML", ...

 private:
  struct Parsed;
  ChatSource source_;
  std::string_view name_;
  std::shared_ptr<const Parsed> parsed_;
};

}  // namespace hydrant::text
