#include "offload/machine_rates.hpp"

#include <algorithm>

#include "runtime/base/error.hpp"

namespace hydrant {
namespace {

template <class List, class Fits>
const auto& find(const List& list, const Fits& fits, const std::string& source,
                 const std::string& what) {
  const auto at = std::find_if(list.begin(), list.end(), fits);
  if (at == list.end())
    fail(Fault::bad_config, "{}: no rates of {}; 'hydrant profile' measures all", source, what);
  return *at;
}

}  // namespace

double Curve::at(double size) const {
  ensure(!points.empty(), "a curve without points");
  if (points.size() == 1 || size <= points.front().first) return points.front().second;
  auto above = std::find_if(points.begin(), points.end(),
                            [&](const auto& point) { return point.first >= size; });
  if (above == points.end()) {
    if (beyond == Beyond::level) return points.back().second;
    above = points.end() - 1;
  }
  const auto& [x0, y0] = *(above - 1);
  const auto& [x1, y1] = *above;
  return y0 + (y1 - y0) * (size - x0) / (x1 - x0);
}

const ProductRate& MachineRates::product(DType format, Activations activations) const {
  return find(
      products,
      [&](const ProductRate& r) { return r.format == format && r.activations == activations; },
      source, fmt::format("products of {} weights", name(format)));
}

const AttentionRate& MachineRates::attention_of(DType dtype) const {
  return find(
      attention, [&](const AttentionRate& r) { return r.dtype == dtype; }, source,
      fmt::format("attention to {} keys and values", name(dtype)));
}

double MachineRates::pack_byte(DType format) const {
  return find(
             packing, [&](const PackRate& r) { return r.format == format; }, source,
             fmt::format("packing {} weights", name(format)))
      .byte;
}

}  // namespace hydrant
