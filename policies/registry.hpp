// The list of policies, and from an id or a name to the policy.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "policies/full.hpp"
#include "policies/h2o.hpp"
#include "policies/h2o_promote.hpp"
#include "policies/local.hpp"
#include "policies/sinks.hpp"
#include "policies/tova.hpp"

namespace hydrant::policy {

using All = std::tuple<Full, Local, Sinks, H2o, H2oPromote, Tova>;

// Calls f with a value of every policy's (empty) type.
template <class F>
constexpr void for_each(F&& f) {
  const auto call = [&]<class... P>(std::tuple<P...>) {
    static_assert((EvictionPolicy<P> && ...));
    (f(P{}), ...);
  };
  call(All{});
}

// Calls f with a value of the (empty) type of the policy with this id.
template <class F>
constexpr void visit(Id id, F&& f) {
  for_each([&](auto policy) {
    if (decltype(policy)::id == id) f(policy);
  });
}

std::string_view name(Id id);
std::string_view name(Positions positions);
bool wants_mass(Id id);
Regions regions(Id id);

std::optional<Id> policy_named(std::string_view name);
std::optional<Positions> positions_named(std::string_view name);
// For messages: "full, local, sinks, ..." in the order of the list.
std::string policy_names();

}  // namespace hydrant::policy
