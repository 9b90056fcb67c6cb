// Any bytes as tokenizer.json, and what follows a zero byte as a text: ids and text, or a refusal.
#include <algorithm>
#include <string_view>

#include "runtime/base/error.hpp"
#include "runtime/text/tokenizer.hpp"
#include "runtime/text/utf8.hpp"
#include "test/fuzz/memory_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hydrant;
  static test::MemoryFile file;
  const uint8_t* const zero = std::find(data, data + size, 0);
  file.fill(data, size_t(zero - data));
  std::string_view text = "The <s>water\n 123  \xC3\xA9\xFF";
  if (zero != data + size) text = {reinterpret_cast<const char*>(zero), size_t(data + size - zero)};
  try {
    const auto tokenizer = text::load_tokenizer_json(file.path());
    const auto ids = tokenizer->encode(text, true);
    if (!text::is_utf8(tokenizer->decode(ids, false))) std::abort();
  } catch (const Error& e) {
    // bad_input: an expression of the file that takes too many steps on the text
    if (e.fault() != Fault::bad_file && e.fault() != Fault::bad_input) throw;
  }
  return 0;
}
