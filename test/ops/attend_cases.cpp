#include "test/ops/attend_cases.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace hydrant::test {

std::vector<float> normals(uint32_t seed, size_t count, float deviation) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> out(count);
  for (float& x : out) x = normal(generator);
  return out;
}

Home::Home(DType dtype, HeadShape shape, int32_t slots, int32_t places)
    : positions(size_t(places * shape.kv_heads * slots), -1),
      dtype_(dtype),
      shape_(shape),
      slots_(slots),
      places_(places),
      head_bytes_(size_t(slots / kRunSlots) * cpu::kv_run_bytes(dtype, shape.head_dim)),
      bytes_(size_t(places * shape.kv_heads) * head_bytes_, std::byte{0xff}) {}

std::byte* Home::head(int32_t place, int32_t kv_head) const {
  return bytes_.data() + size_t(place * shape_.kv_heads + kv_head) * head_bytes_;
}

void Home::put(int32_t place, int32_t kv_head, int32_t slot, const float* key, const float* value) {
  write_key(layout(), head(place, kv_head), slot, key);
  write_value(layout(), head(place, kv_head), slot, value);
}

void Home::put_random(uint32_t seed, int32_t place, int32_t slots) {
  const size_t d = size_t(shape_.head_dim);
  const auto data = normals(seed, size_t(shape_.kv_heads * slots) * d * 2);
  const float* at = data.data();
  for (int32_t h = 0; h < shape_.kv_heads; h++)
    for (int32_t s = 0; s < slots; s++, at += 2 * d) put(place, h, s, at, at + d);
}

std::vector<double> Home::key(int32_t place, int32_t kv_head, int32_t slot) const {
  std::vector<float> row(size_t(shape_.head_dim));
  read_key(layout(), head(place, kv_head), slot, row.data());
  return {row.begin(), row.end()};
}
std::vector<double> Home::value(int32_t place, int32_t kv_head, int32_t slot) const {
  std::vector<float> row(size_t(shape_.head_dim));
  read_value(layout(), head(place, kv_head), slot, row.data());
  return {row.begin(), row.end()};
}

KvRuns Home::row(int32_t place) { return {head(place, 0), head_bytes_, layout().run_bytes()}; }

CacheView Home::view(const std::vector<policy::RowPlan>& plans) {
  CacheView v;
  v.kv = row(0);
  v.place_bytes = head_bytes_ * size_t(shape_.kv_heads);
  v.position = positions.data();
  v.plans = plans.data();
  v.places = places_;
  v.kv_heads = shape_.kv_heads;
  v.head_dim = shape_.head_dim;
  v.slots = slots_;
  v.dtype = dtype_;
  return v;
}

KvRuns Home::row_on(Bench& bench) const {
  auto* const data = static_cast<std::byte*>(bench.put_bytes(bytes_.data(), bytes_.size()));
  return {data, head_bytes_, layout().run_bytes()};
}

CacheView Home::view_on(Bench& bench, const std::vector<policy::RowPlan>& plans) {
  CacheView v = view(plans);
  v.kv = row_on(bench);
  v.position = static_cast<int32_t*>(bench.put_bytes(positions.data(), positions.size() * 4));
  return v;
}

Answer attend_one(const std::vector<double>& q, const std::vector<std::vector<double>>& keys,
                  const std::vector<std::vector<double>>& values, double scale, DType dtype) {
  const size_t d = q.size(), n = keys.size();
  const double unit = std::ldexp(1.0, -24), bf16 = dtype == DType::bf16 ? std::ldexp(1.0, -8) : 0;
  Answer a;
  double top = -INFINITY, largest_logit = 0;
  for (const auto& key : keys) {
    double logit = 0, mass = 0;
    for (size_t i = 0; i < d; i++) {
      logit += q[i] * key[i] * scale;
      mass += std::fabs(q[i] * key[i] * scale);
    }
    a.logits.push_back(logit);
    a.logit_bound = std::max(a.logit_bound, mass * (double(d + 2) * unit + bf16 * 1.01));
    top = std::max(top, logit);
    largest_logit = std::max(largest_logit, std::fabs(logit));
  }
  double total = 0;
  for (const double logit : a.logits) total += std::exp(logit - top);
  a.lse = top + std::log(total);
  const double sums = 3e-7 + double(n + 2) * unit + largest_logit * 2 * unit;
  a.lse_bound = a.logit_bound + sums + std::fabs(a.lse) * unit;
  const double relative = std::expm1(2 * a.logit_bound) + 2 * sums + bf16;
  a.out.assign(d, 0);
  a.out_bound.assign(d, 0);
  for (size_t s = 0; s < n; s++) {
    const double p = std::exp(a.logits[s] - a.lse);
    for (size_t i = 0; i < d; i++) {
      a.out[i] += p * values[s][i];
      a.out_bound[i] += p * std::fabs(values[s][i]) * relative;
    }
  }
  return a;
}

std::vector<float> rotary_table(int32_t places, int32_t dims) {
  std::vector<float> table;
  for (int32_t p = 0; p < places; p++)
    for (int32_t j = 0; j < dims / 2; j++) {
      const double angle = p * std::pow(10000.0, -2.0 * j / dims);
      table.push_back(float(std::cos(angle)));
      table.push_back(float(std::sin(angle)));
    }
  return table;
}

std::vector<double> turned(std::vector<double> x, const std::vector<float>& table, int32_t dims,
                           int32_t place) {
  const size_t half = size_t(dims) / 2;
  for (size_t j = 0; j < half; j++) {
    const double c = double(table[(size_t(place) * half + j) * 2]);
    const double s = double(table[(size_t(place) * half + j) * 2 + 1]);
    const double a = x[j], b = x[j + half];
    x[j] = a * c - b * s;
    x[j + half] = b * c + a * s;
  }
  return x;
}

}  // namespace hydrant::test
