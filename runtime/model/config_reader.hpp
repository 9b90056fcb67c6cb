// Typed reading of a model's description. Every refusal names the file, the key, what it holds and
// what is possible.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "runtime/device/kinds.hpp"

namespace hydrant {

// A view of one JSON object; the object must outlive it. A key that is absent or null counts as not
// given.
class ConfigReader {
 public:
  // `path` stands before keys in messages ("rope_scaling."); `prefix` before keys in the object
  // (GGUF: "llama.").
  ConfigReader(const nlohmann::json& object, std::string file, std::string path = "",
               std::string prefix = "");

  bool has(std::string_view key) const;
  // Whole numbers within [least, most].
  int32_t integer(std::string_view key, int32_t least, int32_t most) const;
  int32_t integer_or(std::string_view key, int32_t fallback, int32_t least, int32_t most) const;
  // Finite and greater than 0.
  double positive(std::string_view key) const;
  double positive_or(std::string_view key, double fallback) const;
  bool flag_or(std::string_view key, bool fallback) const;
  std::string text(std::string_view key) const;
  std::string text_or(std::string_view key, std::string_view fallback) const;
  // One token id or a list of them.
  std::vector<int32_t> ids_or(std::string_view key, std::vector<int32_t> fallback) const;
  // Hugging Face's names: relu, silu (swish), gelu, gelu_new (gelu_fast, gelu_pytorch_tanh).
  Activation activation_or(std::string_view key, Activation fallback) const;
  std::optional<ConfigReader> object(std::string_view key) const;

  // For what the layers cannot do: throws when the key is given and neither false nor 0.
  void refuse_if_set(std::initializer_list<std::string_view> keys) const;
  // "FILE: key KEY is VALUE, WHY"
  [[noreturn]] void refuse(std::string_view key, std::string_view why) const;

 private:
  const nlohmann::json* find(std::string_view key) const;
  const nlohmann::json& get(std::string_view key) const;

  const nlohmann::json& object_;
  std::string file_, path_, prefix_;
};

// Upper bounds of a description's numbers: beyond any model there is, and small enough that
// products of two of them and lists as long as one of them are harmless.
inline constexpr int32_t kMostLayers = 4096, kMostWidth = 1 << 20, kMostHeads = 1 << 14,
                         kMostHeadDim = 1 << 14, kMostVocab = 1 << 24, kMostPositions = 1 << 28;

}  // namespace hydrant
