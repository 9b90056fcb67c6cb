// The kinds of value a configuration key may hold. Each function returns a Key whose path, flag,
// help and commands are still to be filled in; a member says where the value lies.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/apps/config_keys.hpp"

namespace hydrant::kinds {

template <class T>
using Member = T& (*)(RunConfig&);
using Fits = bool (*)(const std::string&);

Key integer(Member<int32_t> member, uint64_t low, uint64_t high);
Key integer(Member<uint64_t> member, uint64_t low, uint64_t high);
Key integer(Member<std::optional<int32_t>> member, uint64_t low, uint64_t high);
Key real(Member<double> member, double low, bool low_allowed, double high);
Key toggle(Member<bool> member);
// A text that fits; by default one that is not empty.
Key text(Member<std::string> member, const std::string& rule, Fits fits = nullptr);
Key text(Member<std::optional<std::string>> member, const std::string& rule);  // may be empty
Key choice(Member<std::string> member, const std::vector<std::string>& options);
// Integers, given as [1, 32] or 1,32.
Key integers(Member<std::vector<int32_t>> member, uint64_t low, uint64_t high, bool may_be_empty);
// Texts that fit. With `commas` the flag splits its text at commas, and the list may not be empty;
// else the flag may be given several times.
Key texts(Member<std::vector<std::string>> member, const std::string& what, Fits fits, bool commas);

// "1,32" as the list it stands for; entries that are no numbers stay texts.
nlohmann::json comma_list(const std::string& text, bool numbers);

}  // namespace hydrant::kinds
