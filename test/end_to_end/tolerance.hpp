// How far f32 may take log-probabilities and scores of the tiny models away from the definition.
//
// An f32 rounding is off by 2^-24 = u of its result at most. A chain of k fused steps rounds
// partial sums that grow like a random walk, so its errors add up to about sqrt(k / 6) u of the
// result: 3 u for the longest here (rows of 24 to 61, heads of 8 to 64, up to 140 slots). What is
// not a chain does not add more: exp, log, erf and tanh of every backend are good to 2 or 3 ulp
// (CUDA's expf and logf to 1 ulp, tanhf and erff to 2), a reciprocal root to 2, sines are rounded
// once.
//
// A layer puts ten such results behind one another: sqrt(10) * 3 u = 10 u. What comes into it goes
// through with a gain of 2 at most: norms and residuals keep a relative error, attention makes of
// an error e in q and k one of 2 |logit| e in its weights, and logits have a deviation of 1.4. So
// two layers and the head leave 2 (2 * 10 + 10) + 3 = 63 u of a logit's deviation, 2, as the
// deviation of its error: 126 u = 8e-6. Of some ten thousand tokens the worst lies 4 deviations
// away.
#pragma once
#include "test/support/near.hpp"

namespace hydrant::test {

inline constexpr double kLogprobTolerance = 4 * 126 * kRound;  // 3e-5
// Between two evaluations in f32, each off by as much at most.
inline constexpr double kLogprobDifference = 2 * kLogprobTolerance;

// Keys and values of 16 bits: an error of f32 makes some of them round the other way, bf16 by 2^-8
// of a component. That is one of at least 8 of a vector, 2^-8 / sqrt(8) of it, and weighs as a slot
// of at least 8 does.
inline constexpr double kFlippedRounding = 0x1p-8 / 2.8 / 8;  // 1.7e-4

// Activations of 8 bits: codes are steps of 1/127 of the largest of 32, which lies 2.1 deviations
// out. One code or key that rounds the other way moves a vector by 2e-3 of itself, which turns one
// code of eight of the next, and after two more of them codes are as good as rounded anew. Two
// roundings differ by a step / sqrt(6) in deviation, and so does what is multiplied from them. Of
// the 8 products on a token's way, the outputs of which make half of what they are added to, that
// leaves sqrt(8 / 2) such, of a logit's deviation, 2.
inline constexpr double kFlippedCode = 2 * 2 * 2.1 / 127 / 2.45;  // 2.7e-2

// A score is a sum of probabilities, each off by the error of its logit, 2 * 1.4 * 20 u in the
// second layer, and by 2 ulp of exp: 60 u of it. Scores of those who may leave are below 1: where
// two of them differ by more than this, one evaluation chooses like the definition; by more than
// twice as much, two evaluations alike.
inline constexpr double kClose = 64 * kRound;  // 4e-6
inline constexpr double kScoreGap = 2 * kClose;

}  // namespace hydrant::test
