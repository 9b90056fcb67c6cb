#include "policies/registry.hpp"

namespace hydrant::policy {

std::string_view name(Id id) {
  std::string_view found;
  visit(id, [&](auto policy) { found = policy.name; });
  return found;
}

std::string_view name(Positions positions) {
  return positions == Positions::original ? "original" : "cache";
}

bool wants_mass(Id id) {
  bool wants = false;
  visit(id, [&](auto policy) { wants = policy.wants_mass; });
  return wants;
}

Regions regions(Id id) {
  Regions found;
  visit(id, [&](auto policy) { found = policy.regions; });
  return found;
}

std::optional<Id> policy_named(std::string_view name) {
  std::optional<Id> found;
  for_each([&](auto policy) {
    if (policy.name == name) found = policy.id;
  });
  return found;
}

std::optional<Positions> positions_named(std::string_view text) {
  for (const Positions p : {Positions::original, Positions::cache})
    if (name(p) == text) return p;
  return std::nullopt;
}

std::string policy_names() {
  std::string names;
  for_each([&](auto policy) { names.append(names.empty() ? "" : ", ").append(policy.name); });
  return names;
}

}  // namespace hydrant::policy
