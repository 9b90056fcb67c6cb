// Rows with random keys and values for the tests of attention, and attention itself in double
// precision: the plain definition, over what the cache really holds.
#pragma once
#include <random>
#include <vector>

#include "runtime/backends/cpu/isa.hpp"
#include "runtime/backends/cpu/kernels/attend.hpp"
#include "test/support/backend_fixture.hpp"
#include "test/support/kv_content.hpp"

namespace hydrant::test {

inline const DType kKvTypes[] = {DType::f32, DType::f16, DType::bf16};

std::vector<float> normals(uint32_t seed, size_t count, float deviation = 1);

// Keys and values of the KV heads of one or more rows. Slots that were never put are NaN: an
// operation that touches one shows it.
class Home {
 public:
  Home(DType dtype, HeadShape shape, int32_t slots, int32_t places = 1);
  void put(int32_t place, int32_t kv_head, int32_t slot, const float* key, const float* value);
  void put_random(uint32_t seed, int32_t place, int32_t slots);
  std::vector<double> key(int32_t place, int32_t kv_head, int32_t slot) const;
  std::vector<double> value(int32_t place, int32_t kv_head, int32_t slot) const;

  cpu::KvLayout layout() const { return {dtype_, shape_.head_dim}; }
  int32_t slots() const { return slots_; }
  const HeadShape& shape() const { return shape_; }
  KvRuns row(int32_t place);
  // The same on a device, with its positions; it stays until the bench ends.
  KvRuns row_on(Bench& bench) const;
  CacheView view_on(Bench& bench, const std::vector<policy::RowPlan>& plans);
  CacheView view(const std::vector<policy::RowPlan>& plans);  // statistics: none
  std::vector<int32_t> positions;                             // [place][kv_head][slots]

 private:
  std::byte* head(int32_t place, int32_t kv_head) const;
  DType dtype_;
  HeadShape shape_;
  int32_t slots_, places_;
  size_t head_bytes_;
  mutable std::vector<std::byte> bytes_;
};

// One query head over some slots, with a bound of the error that any f32 (for bf16 caches: bf16)
// evaluation of the same sums may have.
//
// A logit is a chain of d fused steps, each rounding by at most 2^-24 of a partial sum that is at
// most `mass` = sum |q k| scale, after the rounding of q (2^-24 when scaled, 2^-8 to bf16): its
// error is at most mass * (d + 2) * 2^-24, or with bf16 also mass * 2^-8 * 1.01. If all logits are
// off by at most D, each probability is off by a factor of at most e^(2 D), and with exp's own
// error (3e-7), a sum of n terms (n * 2^-24), maxima that were subtracted (|logit| * 2^-23) and, in
// bf16, weights rounded by 2^-8, each output by at most the sum of these times sum p |v|.
struct Answer {
  std::vector<double> out, logits;
  double lse = 0;
  double logit_bound = 0, lse_bound = 0;
  std::vector<double> out_bound;
};
Answer attend_one(const std::vector<double>& q, const std::vector<std::vector<double>>& keys,
                  const std::vector<std::vector<double>>& values, double scale, DType dtype);

// x turned by `place` of a table [places][dims / 2][cos, sin], in double.
std::vector<double> turned(std::vector<double> x, const std::vector<float>& table, int32_t dims,
                           int32_t place);
std::vector<float> rotary_table(int32_t places, int32_t dims);

}  // namespace hydrant::test
