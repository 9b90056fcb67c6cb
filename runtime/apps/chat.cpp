#include "runtime/apps/chat.hpp"

#include "runtime/base/error.hpp"
#include "runtime/base/json.hpp"

namespace hydrant {

text::ChatSource chat_source(const ModelFiles& files) {
  if (files.kind == FileKind::hugging_face) {
    if (auto source = text::read_chat_source(files.path)) return std::move(*source);
    fail(Fault::bad_file, "{}: --chat: the folder has no chat template", files.path);
  }
  const auto it = files.config->find("tokenizer.chat_template");
  if (it == files.config->end() || !it->is_string())
    fail(Fault::bad_file, "{}: --chat: the file has no tokenizer.chat_template", files.path);
  const auto spelled = [&](int32_t id) {
    const auto& tokens = files.tokenizer.tokens;
    return id >= 0 && size_t(id) < tokens.size() ? tokens[size_t(id)] : std::string();
  };
  return {files.path, it->get<std::string>(), spelled(files.tokenizer.bos),
          spelled(files.tokenizer.eos)};
}

}  // namespace hydrant
