#include "models/registry.hpp"

#include "runtime/base/error.hpp"

namespace hydrant {

const ModelFamily& find_family(std::string_view name, FileKind kind, const std::string& file) {
  std::string known;
  for (const ModelFamily* f : families()) {
    const std::string_view called = kind == FileKind::gguf ? f->gguf_name : f->name;
    if (called.empty()) continue;
    if (called == name) return *f;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", called);
  }
  fail(Fault::bad_file, "{}: unknown architecture '{}'; known: {}", file, name, known);
}

}  // namespace hydrant
