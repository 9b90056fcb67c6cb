// What an eviction policy is, and the plain data it works on. Source: H2O (arXiv 2306.14048)
// section 4.
#pragma once
#include <concepts>
#include <cstdint>
#include <string_view>

#include "policies/hd.hpp"
#include "policies/layout.hpp"

namespace hydrant::policy {

enum class Id : uint8_t { full, local, sinks, h2o, h2o_promote, tova };

// original: a key keeps the place it had when stored. cache: its place is its rank among the live
// slots of its head (keys are stored unrotated and rotated on reading).
enum class Positions : uint8_t { original, cache };

// How one row's cache is run in one layer. `scored` is false when nothing can ever be evicted or
// the policy does not look at attention: such a row is never scored.
struct RowPlan {
  SlotLayout slots;
  Id policy = Id::full;
  Positions positions = Positions::original;
  bool scored = false;
};

// One column of the prompt's causal attention: the probabilities one key received, summed over the
// query heads of its KV head.
struct PromptColumn {
  float sum;   // over all queries of the prompt
  float last;  // of the last query
};

// A policy is stateless arithmetic on a slot's fp32 score.
template <class P>
concept EvictionPolicy = requires(float score, float mass, bool leaving, PromptColumn column) {
  { P::id } -> std::convertible_to<Id>;
  { P::name } -> std::convertible_to<std::string_view>;
  { P::wants_mass } -> std::convertible_to<bool>;      // needs attention's logits and lse
  { P::from_prompt(column) } -> std::same_as<float>;   // score after prefill
  { P::observe(score, mass) } -> std::same_as<float>;  // score after a decode step's attention
  { P::keep(score, leaving) } -> std::same_as<float>;  // the lowest leaves; kNever: only if alone
};

inline constexpr float kNever = 3.0e38f;

}  // namespace hydrant::policy
