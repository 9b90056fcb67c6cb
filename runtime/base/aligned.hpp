// 64-bit index helpers.
#pragma once
#include <concepts>

namespace hydrant {

// Both arguments non-negative, `step` positive; the result must fit the type.
template <std::integral T>
constexpr T ceil_div(T value, T step) {
  return value / step + (value % step != 0);
}
template <std::integral T>
constexpr T align_up(T value, T step) {
  return ceil_div(value, step) * step;
}

}  // namespace hydrant
