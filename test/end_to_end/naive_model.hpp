// What a row must give, straight from the definition: one sequence, lists of slots, doubles. Shares
// no arithmetic with the runtime.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "policies/policy.hpp"
#include "test/end_to_end/tiny_model.hpp"

namespace hydrant::test {

struct NaivePolicy {
  policy::Id id = policy::Id::full;
  policy::SlotLayout budget;
  policy::Positions positions = policy::Positions::original;
};

class NaiveSequence {
 public:
  NaiveSequence(const TinyModel& model, const NaivePolicy& policy);

  // The prompt first, then one id a call. Logits after the last of them, [vocab].
  std::vector<double> forward(std::span<const int32_t> ids);

  // [layer][kv head][positions, ascending]
  std::vector<std::vector<std::vector<int32_t>>> kept() const;
  // How far the victims of the latest forward lay below the runners-up, the closest of all.
  double eviction_gap() const { return gap_; }

 private:
  using Rows = std::vector<std::vector<double>>;
  struct Slot {
    std::vector<double> key, value;
    int32_t position;
    double score;
  };
  using Head = std::vector<Slot>;  // oldest first

  Rows linear(const Rows& x, int stage, Matrix role, Vector bias) const;
  Rows norm(const Rows& x, int stage, Vector gain, Vector bias) const;
  Rows attend(const Rows& x, int layer);
  void attend_head(Head& slots, size_t head, const Rows& q, Rows& out);
  Rows feed_forward(const Rows& x, int stage) const;
  void evict(Head& slots, bool prefill);
  void rotate(std::vector<double>& x, int32_t place) const;
  bool has(int stage, Matrix role) const;

  const TinyModel& model_;
  NaivePolicy policy_;
  int32_t length_ = 0;
  std::vector<std::vector<Head>> heads_;  // [layer][kv head]
  double gap_ = 0;
};

}  // namespace hydrant::test
