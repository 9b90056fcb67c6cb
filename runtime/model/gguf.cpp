#include "runtime/model/gguf.hpp"

#include <limits>
#include <type_traits>
#include <unordered_set>
#include <utility>

#include "runtime/base/error.hpp"
#include "runtime/base/json.hpp"
#include "runtime/model/gguf_cursor.hpp"
#include "runtime/model/gguf_tensors.hpp"

namespace hydrant {
namespace {

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr uint64_t kDefaultAlignment = 32, kLargestAlignment = uint64_t{1} << 20;
constexpr uint64_t kLongestJsonArray = 65536;
constexpr int32_t kLargestId = std::numeric_limits<int32_t>::max();

class Reader {
 public:
  explicit Reader(const File& file) : file_(file), cursor_(file) {}

  GgufHeader read() {
    read_preamble();
    Json metadata = Json::object();
    for (uint64_t i = 0; i < values_; i++) read_entry(metadata);
    take_tokenizer_scalars(metadata);
    const uint64_t alignment = read_alignment(metadata);
    header_.tensors = read_gguf_tensors(file_, cursor_, tensors_, alignment);
    header_.metadata = std::make_shared<const Json>(std::move(metadata));
    return std::move(header_);
  }

 private:
  void read_preamble() {
    if (cursor_.number<uint32_t>("the magic") != kMagic) cursor_.refuse("not a GGUF file");
    const auto version = cursor_.number<uint32_t>("the version");
    if (version != 2 && version != 3)
      cursor_.refuse("GGUF version {}{}; versions 2 and 3 are read", version,
                     version != 0 && (version & 0xffff) == 0 ? " (a big-endian file)" : "");
    tensors_ = cursor_.count(24, "the number of tensors");
    values_ = cursor_.count(13, "the number of keys");
  }

  void read_entry(Json& metadata) {
    const std::string key = cursor_.text("a key");
    const std::string what = "key " + printable(key);
    if (!keys_.insert(key).second) cursor_.refuse("{} occurs twice", what);
    const GgufType type = cursor_.type(what);
    if (type == GgufType::array)
      read_array(metadata, key, what);
    else
      metadata[key] = read_scalar(type, what);
  }

  Json read_scalar(GgufType type, const std::string& what) {
    switch (type) {
      case GgufType::u8:
        return cursor_.number<uint8_t>(what);
      case GgufType::i8:
        return cursor_.number<int8_t>(what);
      case GgufType::u16:
        return cursor_.number<uint16_t>(what);
      case GgufType::i16:
        return cursor_.number<int16_t>(what);
      case GgufType::u32:
        return cursor_.number<uint32_t>(what);
      case GgufType::i32:
        return cursor_.number<int32_t>(what);
      case GgufType::f32:
        return cursor_.number<float>(what);
      case GgufType::flag:
        return cursor_.number<uint8_t>(what) != 0;
      case GgufType::text:
        return cursor_.text(what);
      case GgufType::u64:
        return cursor_.number<uint64_t>(what);
      case GgufType::i64:
        return cursor_.number<int64_t>(what);
      case GgufType::f64:
        return cursor_.number<double>(what);
      case GgufType::array:
        break;
    }
    cursor_.refuse("{} is an array of arrays, which is not read", what);
  }

  void read_array(Json& metadata, const std::string& key, const std::string& what) {
    const GgufType type = cursor_.type(what);
    const uint64_t count = cursor_.count(least_bytes(type), what);
    GgufTokenizer& t = header_.tokenizer;
    if (key == "tokenizer.ggml.tokens") return read_list(t.tokens, type, count, what);
    if (key == "tokenizer.ggml.merges") return read_list(t.merges, type, count, what);
    if (key == "tokenizer.ggml.scores") return read_list(t.scores, type, count, what);
    if (key == "tokenizer.ggml.token_type") return read_list(t.types, type, count, what);
    const bool keep = count <= kLongestJsonArray;
    if (!keep && type != GgufType::text && type != GgufType::array)
      return cursor_.skip(count * least_bytes(type), what);
    Json list = Json::array();
    for (uint64_t i = 0; i < count; i++) {
      Json value = read_scalar(type, what);
      if (keep) list.push_back(std::move(value));
    }
    if (keep) metadata[key] = std::move(list);
  }

  template <class T>
  void read_list(std::vector<T>& list, GgufType type, uint64_t count, const std::string& what) {
    constexpr bool text = std::is_same_v<T, std::string>, real = std::is_same_v<T, float>;
    if (type != (text ? GgufType::text : real ? GgufType::f32 : GgufType::i32))
      cursor_.refuse("{} is an array of type {}, not of {}", what, uint32_t(type),
                     text   ? "texts"
                     : real ? "f32"
                            : "i32");
    list.reserve(size_t(count));
    for (uint64_t i = 0; i < count; i++) {
      if constexpr (text)
        list.push_back(cursor_.text(what));
      else
        list.push_back(cursor_.number<T>(what));
    }
  }

  void take_tokenizer_scalars(const Json& metadata) {
    GgufTokenizer& t = header_.tokenizer;
    const auto find = [&](const char* name) -> const Json* {
      const auto at = metadata.find(std::string("tokenizer.ggml.") + name);
      return at == metadata.end() ? nullptr : &*at;
    };
    const auto text = [&](const char* name, std::string& to) {
      const Json* value = find(name);
      if (!value) return;
      if (!value->is_string()) cursor_.refuse("key tokenizer.ggml.{} is not a text", name);
      to = value->get<std::string>();
    };
    const auto id = [&](const char* name, int32_t& to) {
      const Json* value = find(name);
      if (!value) return;
      if (!value->is_number_unsigned() || value->get<uint64_t>() > uint64_t(kLargestId))
        cursor_.refuse("key tokenizer.ggml.{} is not a token id", name);
      to = value->get<int32_t>();
    };
    const auto flag = [&](const char* name, std::optional<bool>& to) {
      const Json* value = find(name);
      if (!value) return;
      if (!value->is_boolean()) cursor_.refuse("key tokenizer.ggml.{} is not a boolean", name);
      to = value->get<bool>();
    };
    text("model", t.model);
    text("pre", t.pre);
    id("bos_token_id", t.bos);
    id("eos_token_id", t.eos);
    id("eot_token_id", t.end_of_turn);
    id("unknown_token_id", t.unknown);
    flag("add_bos_token", t.add_bos);
    flag("add_eos_token", t.add_eos);
    flag("add_space_prefix", t.add_space_prefix);
  }

  uint64_t read_alignment(const Json& metadata) const {
    const auto at = metadata.find("general.alignment");
    if (at == metadata.end()) return kDefaultAlignment;
    const uint64_t value = at->is_number_unsigned() ? at->get<uint64_t>() : 0;
    if (value < 8 || value > kLargestAlignment || (value & (value - 1)) != 0)
      cursor_.refuse("key general.alignment is {}, not a power of two from 8 to {}", at->dump(),
                     kLargestAlignment);
    return value;
  }

  const File& file_;
  GgufCursor cursor_;
  GgufHeader header_;
  std::unordered_set<std::string> keys_;
  uint64_t tensors_ = 0, values_ = 0;
};

}  // namespace

std::vector<int32_t> GgufTokenizer::ends() const {
  std::vector<int32_t> ids;
  if (eos >= 0) ids.push_back(eos);
  if (end_of_turn >= 0 && end_of_turn != eos) ids.push_back(end_of_turn);
  return ids;
}

GgufHeader read_gguf_header(const File& file) { return Reader(file).read(); }

}  // namespace hydrant
