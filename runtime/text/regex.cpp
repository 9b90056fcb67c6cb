#include "runtime/text/regex.hpp"

#include <pcre2.h>

#include "runtime/base/error.hpp"
#include "runtime/text/onigmo.hpp"

namespace hydrant::text {
namespace {

constexpr size_t kLongestPattern = 1 << 16;
constexpr uint32_t kMatchLimit = 20'000'000;  // steps of one search: well under a second
constexpr uint32_t kHeapLimit = 64 << 10;     // KiB
constexpr size_t kJitStack = size_t{8} << 20;

std::string message(int code) {
  PCRE2_UCHAR text[160];
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

template <auto Free>
struct Deleter {
  template <class T>
  void operator()(T* p) const {
    Free(p);
  }
};
using CompileContext = std::unique_ptr<pcre2_compile_context, Deleter<pcre2_compile_context_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Deleter<pcre2_match_context_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Deleter<pcre2_match_data_free>>;
using JitStack = std::unique_ptr<pcre2_jit_stack, Deleter<pcre2_jit_stack_free>>;

// What a thread needs to match; the patterns have no captures, so one pair is enough for all.
struct Workspace {
  MatchContext context{pcre2_match_context_create(nullptr)};
  MatchData data{pcre2_match_data_create(1, nullptr)};
  JitStack stack{pcre2_jit_stack_create(32 << 10, kJitStack, nullptr)};

  Workspace() {
    if (!context || !data) fail(Fault::out_of_memory, "no memory for a regular expression match");
    pcre2_set_match_limit(context.get(), kMatchLimit);
    pcre2_set_heap_limit(context.get(), kHeapLimit);
    if (stack) pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  }
};

}  // namespace

struct Regex::Code {
  std::unique_ptr<pcre2_code, Deleter<pcre2_code_free>> compiled;
  std::string pattern;
};

Regex::Regex(std::string_view pattern, const std::string& where) {
  if (pattern.size() > kLongestPattern) {
    fail(Fault::bad_file, "{}: an expression of {} bytes, the limit is {}", where, pattern.size(),
         kLongestPattern);
  }
  const std::string translated = pcre_from_onigmo(pattern, where);
  const CompileContext context{pcre2_compile_context_create(nullptr)};
  if (!context) fail(Fault::out_of_memory, "no memory for a regular expression");
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  size_t offset = 0;
  auto code = std::make_shared<Code>();
  code->pattern = std::string(pattern);
  code->compiled.reset(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error,
                    &offset, context.get()));
  if (!code->compiled) {
    fail(Fault::bad_file, "{}: the expression {} is not understood: {}", where, pattern,
         message(error));
  }
  pcre2_jit_compile(code->compiled.get(), PCRE2_JIT_COMPLETE);  // without it, only slower
  code_ = std::move(code);
}

std::optional<Range> Regex::find(std::string_view text, size_t from) const {
  thread_local const Workspace workspace;
  const int result =
      pcre2_match(code_->compiled.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                  from, PCRE2_NO_UTF_CHECK, workspace.data.get(), workspace.context.get());
  if (result == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (result < 0) {
    fail(Fault::bad_input,
         "the tokenizer's expression {} cannot be applied to a text of {} bytes: {}",
         code_->pattern, text.size(), message(result));
  }
  const size_t* range = pcre2_get_ovector_pointer(workspace.data.get());
  return Range{range[0], range[1]};
}

}  // namespace hydrant::text
