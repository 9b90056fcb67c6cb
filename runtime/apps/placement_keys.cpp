#include "runtime/apps/placement_keys.hpp"

#include <array>
#include <cmath>

#include "runtime/apps/json_text.hpp"
#include "runtime/apps/sizes.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/json.hpp"

namespace hydrant::kinds {
namespace {

constexpr std::array<const char*, 3> kHomes{"device", "host", "disk"};
constexpr std::array<const char*, 3> kPlaced{"weights", "cache", "activations"};

using Parse = std::optional<uint64_t> (*)(std::string_view);

Key amount(Member<std::optional<uint64_t>> member, Parse parse, const std::string& rule) {
  Key key;
  key.read = [=](RunConfig& c, const Json& j, const std::string& where) {
    std::optional<uint64_t> bytes;
    if (j.is_number_unsigned()) bytes = j.get<uint64_t>();
    if (j.is_string()) bytes = parse(j.get_ref<const std::string&>());
    if (!bytes || *bytes < 1 || *bytes > kMostBytes)
      fail(Fault::bad_config, "{}: must be {}, not {}", where, rule, shown(j));
    member(c) = bytes;
  };
  key.write = [=](const RunConfig& c) -> Json {
    const std::optional<uint64_t>& bytes = member(const_cast<RunConfig&>(c));
    return bytes ? Json(*bytes) : Json();
  };
  key.from_flag = [](const std::vector<std::string>& texts) { return Json(texts.back()); };
  return key;
}

double percent(const Json& value, const std::string& where) {
  const double share = is_number(value) ? number_of(value) : -1;
  if (!(share >= 0 && share <= 100))
    fail(Fault::bad_config, "{}: must be a percentage from 0 to 100, not {}", where, shown(value));
  return share;
}

Json percent_json(double share) {
  return share == std::floor(share) ? Json(int64_t(share)) : Json(share);
}

Json numbers(const std::string& text) { return comma_list(text, /*numbers=*/true); }

// A flag's "20,80" as the object it stands for; a list of another length stays one.
Json shares_flag(const std::vector<std::string>& texts) {
  const Json list = numbers(texts.back());
  if (list.size() > kHomes.size()) return list;
  Json object = Json::object();
  for (size_t i = 0; i < list.size(); i++) object[kHomes[i]] = list[i];
  return object;
}

Shares read_shares(const Json& value, const std::string& where) {
  if (!value.is_object() || value.empty())
    fail(Fault::bad_config,
         "{}: must be percentages of device, host and disk, which takes the rest, not {}", where,
         shown(value));
  const bool flag = where.starts_with("--");
  std::array<double, 3> share{};
  for (const auto& [word, entry] : value.items()) {
    const auto home = std::find(kHomes.begin(), kHomes.end(), word);
    const std::string here = fmt::format("{}{}{}", where, flag ? " " : ".", word);
    if (home == kHomes.end())
      fail(Fault::bad_config, "{}: unknown key{}", here, suggestion(word, kHomes));
    share[size_t(home - kHomes.begin())] = percent(entry, here);
  }
  const bool all = value.contains("disk");
  const double sum = share[0] + share[1] + share[2];
  if (all ? std::abs(sum - 100) > 1e-6 : sum > 100)
    fail(Fault::bad_config, "{}: must be 100 together{}; device {} + host {}{} is {}", where,
         all ? "" : " at most, the rest is disk", share[0], share[1],
         all ? fmt::format(" + disk {}", share[2]) : "", sum);
  return {share[0], share[1], all ? share[2] : 100 - share[0] - share[1]};
}

Json write_shares(const Shares& s) {
  return {{"device", percent_json(s.device)},
          {"host", percent_json(s.host)},
          {"disk", percent_json(s.disk)}};
}

void read_six(const Json& value, const std::string& where, PlacementConfig& placement) {
  std::array<Shares*, 3> to{&placement.weights, &placement.cache, &placement.activations};
  for (size_t i = 0; i < to.size(); i++) {
    const double device = percent(value[2 * i], fmt::format("{}[{}]", where, 2 * i)),
                 host = percent(value[2 * i + 1], fmt::format("{}[{}]", where, 2 * i + 1));
    if (device + host > 100)
      fail(Fault::bad_config,
           "{}: device and host of {} must be 100 together at most, the rest is disk; {} + {} is "
           "{}",
           where, kPlaced[i], device, host, device + host);
    *to[i] = {device, host, 100 - device - host};
  }
}

// What is written in one word: "auto", or six percentages. Nothing when it is neither.
std::optional<PlacementConfig> read_short(const Json& value, const std::string& where) {
  if (value == "auto") return PlacementConfig();
  if (!value.is_array() || value.size() != 6) return std::nullopt;
  PlacementConfig placement{.automatic = false};
  read_six(value, where, placement);
  return placement;
}

Json short_form(const std::string& text) { return text == "auto" ? Json(text) : numbers(text); }

}  // namespace

Key size(Member<std::optional<uint64_t>> member) {
  return amount(member, parse_bytes, "bytes: an integer from 1, or a text such as \"1.5GiB\"");
}

Key rate(Member<std::optional<uint64_t>> member) {
  return amount(member, parse_rate,
                "bytes a second: an integer from 1, or a text such as \"3GB/s\"");
}

Key shares(Member<Shares> member) {
  Key key;
  key.read = [=](RunConfig& c, const Json& j, const std::string& where) {
    const Shares read = read_shares(j, where);
    if (c.placement.automatic) c.placement = {.automatic = false};
    member(c) = read;
  };
  key.write = [=](const RunConfig& c) -> Json {
    return c.placement.automatic ? Json() : write_shares(member(const_cast<RunConfig&>(c)));
  };
  key.from_flag = shares_flag;
  return key;
}

Key whole_placement() {
  Key key;
  key.read = [](RunConfig& c, const Json& j, const std::string& where) {
    const auto read = read_short(j, where);
    if (!read)
      fail(Fault::bad_config,
           "{}: must be \"auto\", six percentages (device and host of weights, cache and "
           "activations) or an object of weights, cache and activations, not {}",
           where, shown(j));
    c.placement = *read;
  };
  key.write = [](const RunConfig& c) -> Json {
    return c.placement.automatic ? Json("auto") : Json();
  };
  key.from_flag = [](const std::vector<std::string>& texts) { return short_form(texts.back()); };
  return key;
}

Key placements() {
  Key key;
  key.repeatable = true;
  key.read = [](RunConfig& c, const Json& j, const std::string& where) {
    const auto refuse = [&](const Json& value) {
      fail(Fault::bad_config,
           "{}: must be a non-empty list of placements, each \"auto\" or six percentages (device "
           "and host of weights, cache and activations), not {}",
           where, shown(value));
    };
    if (!j.is_array() || j.empty()) refuse(j);
    std::vector<PlacementConfig> list;
    for (const Json& entry : j) {
      const auto read = read_short(entry, where);
      if (!read) refuse(entry);
      list.push_back(*read);
    }
    c.bench.placement = std::move(list);
  };
  key.write = [](const RunConfig& c) -> Json {
    Json list = Json::array();
    for (const PlacementConfig& p : c.bench.placement)
      list.push_back(short_form(placement_text(p)));
    return list.empty() ? Json() : list;
  };
  key.from_flag = [](const std::vector<std::string>& texts) {
    Json list = Json::array();
    for (const std::string& text : texts) list.push_back(short_form(text));
    return list;
  };
  return key;
}

}  // namespace hydrant::kinds

namespace hydrant {

std::string placement_text(const PlacementConfig& p) {
  if (p.automatic) return "auto";
  return fmt::format("{},{},{},{},{},{}", p.weights.device, p.weights.host, p.cache.device,
                     p.cache.host, p.activations.device, p.activations.host);
}

}  // namespace hydrant
