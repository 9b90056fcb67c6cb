// A conversation -> the text a chat model was trained on.
#pragma once
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

// Recognises ChatML, LLaMA-2, LLaMA-3 and Zephyr by the template's text.
class ChatTemplate {
 public:
  explicit ChatTemplate(ChatSource source);  // throws bad_file: none of the known ones

  // The prompt for the assistant's next message, as the model's own Jinja template renders it. It
  // spells the special tokens itself: encode it with add_special = false. Throws bad_input where
  // the template refuses a conversation.
  std::string render(std::span<const Message> messages) const;
  std::string_view name() const { return name_; }  // "ChatML", ...

 private:
  ChatSource source_;
  std::string_view name_;
};

}  // namespace hydrant::text
