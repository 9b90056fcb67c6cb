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

// The regions of a layout that a policy has (they are also its keys in a configuration), and how a
// budget is spread over them where nothing else was asked for.
struct Regions {
  bool sinks = false, heavy = false, recent = false;
  int32_t usual_sinks = 0;
  int32_t usual_recent = 0;  // beside heavy slots; 0: the larger half
};

inline constexpr float kNever = 3.0e38f;

// A policy is stateless arithmetic on a slot's fp32 score.
template <class P>
concept EvictionPolicy = requires(float score, float mass, bool leaving, PromptColumn column) {
  { P::id } -> std::convertible_to<Id>;
  { P::name } -> std::convertible_to<std::string_view>;
  { P::regions } -> std::convertible_to<Regions>;
  { P::wants_mass } -> std::convertible_to<bool>;      // looks at attention; else the oldest leaves
  { P::from_prompt(column) } -> std::same_as<float>;   // score after prefill
  { P::observe(score, mass) } -> std::same_as<float>;  // score after a decode step's attention
  { P::keep(score, leaving) } -> std::same_as<float>;  // the lowest leaves; kNever: only if alone
};

// What a policy that does not look at attention says of scores.
struct WithoutScores {
  static constexpr bool wants_mass = false;
  HD static constexpr float from_prompt(PromptColumn) { return 0; }
  HD static constexpr float observe(float, float) { return 0; }
  HD static constexpr float keep(float, bool) { return 0; }
};

}  // namespace hydrant::policy
