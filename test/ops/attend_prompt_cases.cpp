#include "test/ops/attend_prompt_cases.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

namespace hydrant::test {

std::vector<int32_t> PromptRun::chunks(int32_t chunk) const {
  std::vector<int32_t> sizes;
  for (int32_t done = 0; done < length; done += sizes.back())
    sizes.push_back(std::min(chunk, length - done));
  return sizes;
}

PromptRun::Result PromptRun::run(cpu::Isa isa, int threads,
                                 const std::vector<int32_t>& sizes) const {
  const HeadShape shape = home.shape();
  Result r;
  r.out.assign(q.size(), -1);
  r.lse.assign(size_t(length * shape.heads), -1);
  // one more than needed between the heads, to see that nobody writes there
  const int32_t stride = length + 1;
  std::vector<float> sum(size_t(shape.kv_heads * stride), 0), last(sum.size(), -1);
  cpu::ThreadPool pool(threads);
  cpu::AttendScratch attend, summarize;
  int32_t first = 0;
  for (const int32_t count : sizes) {
    PromptSegment p;
    p.segment = {0, first, count, 0};
    p.kv = home.row(0);
    p.sum = sum.data();
    p.last = last.data();
    p.length = length;
    p.stats_stride = stride;
    const PromptSegment segments[] = {p};
    const size_t row = size_t(first * shape.heads);
    const Shape vectors{count, shape.heads, shape.head_dim}, numbers{count, shape.heads};
    AttendPromptArgs a;
    a.q = {q.data() + row * size_t(shape.head_dim), DType::f32, vectors};
    a.shape = shape;
    a.segments = segments;
    a.dtype = home.layout().dtype;
    a.scale = scale;
    a.out = {r.out.data() + row * size_t(shape.head_dim), DType::f32, vectors};
    a.lse = {r.lse.data() + row, DType::f32, numbers};
    cpu::attend_prompt(pool, isa, a, attend);
    cpu::summarize_prompt(pool, isa, {a.q, a.lse, shape, segments, a.dtype, scale}, summarize);
    first += count;
  }
  for (int32_t h = 0; h < shape.kv_heads; h++) {
    const auto at = [&](std::vector<float>& v) { return v.begin() + h * stride; };
    r.columns.sum.insert(r.columns.sum.end(), at(sum), at(sum) + length);
    r.columns.last.insert(r.columns.last.end(), at(last), at(last) + length);
    if (at(sum)[length] != 0 || at(last)[length] != -1) r.columns.sum.clear();  // overrun
  }
  r.attend_bytes = attend.bytes();
  r.summarize_bytes = summarize.bytes();
  return r;
}

PromptRun::Result PromptRun::run(const DeviceChoice& choice,
                                 const std::vector<int32_t>& sizes) const {
  const HeadShape shape = home.shape();
  const size_t width = size_t(shape.heads) * size_t(shape.head_dim);
  Result r;
  const int32_t stride = length + 1;
  Bench bench(choice);
  PromptSegment p;
  p.kv = home.row_on(bench);
  const auto columns = size_t(shape.kv_heads * stride);
  const Tensor sum = bench.put(std::vector<float>(columns, 0.0f), {int64_t(columns)});
  const Tensor last = bench.put(std::vector<float>(columns, -1.0f), {int64_t(columns)});
  p.sum = sum.as<float>();
  p.last = last.as<float>();
  p.length = length;
  p.stats_stride = stride;
  size_t first = 0;
  for (const int32_t count : sizes) {
    p.segment = {0, int32_t(first), count, 0};
    const auto begin = q.begin() + std::ptrdiff_t(first * width);
    first += size_t(count);
    const Tensor in =
        bench.put(std::vector<float>(begin, q.begin() + std::ptrdiff_t(first * width)),
                  {count, shape.heads, shape.head_dim});
    const Tensor out = bench.make(DType::f32, in.shape);
    const Tensor lse = bench.make(DType::f32, {count, shape.heads});
    const DType dtype = home.layout().dtype;
    bench.ops().attend_prompt(*bench.stream, {in, shape, {&p, 1}, dtype, scale, out, lse});
    bench.ops().summarize_prompt(*bench.stream, {in, lse, shape, {&p, 1}, dtype, scale});
    const auto outs = bench.get(out), lses = bench.get(lse);
    r.out.insert(r.out.end(), outs.begin(), outs.end());
    r.lse.insert(r.lse.end(), lses.begin(), lses.end());
  }
  const auto sums = bench.get(sum), lasts = bench.get(last);
  for (int32_t h = 0; h < shape.kv_heads; h++) {
    const auto at = [&](const std::vector<float>& v) { return v.begin() + h * stride; };
    r.columns.sum.insert(r.columns.sum.end(), at(sums), at(sums) + length);
    r.columns.last.insert(r.columns.last.end(), at(lasts), at(lasts) + length);
    if (at(sums)[length] != 0 || at(lasts)[length] != -1) r.columns.sum.clear();  // overrun
  }
  return r;
}

std::vector<double> PromptRun::query(int32_t position, int32_t head) const {
  const auto d = home.shape().head_dim;
  const auto at = q.begin() + (position * home.shape().heads + head) * d;
  return {at, at + d};
}

void check_out(const PromptRun& prompt, const PromptRun::Result& r, int32_t every) {
  const HeadShape shape = prompt.home.shape();
  for (int32_t n = 0; n < prompt.length; n += n + every < prompt.length ? every : 1)
    for (int32_t head = n % shape.heads; head < shape.heads; head += 2) {
      const int32_t kv_head = head / (shape.heads / shape.kv_heads);
      std::vector<std::vector<double>> keys, values;
      for (int32_t slot = 0; slot <= n; slot++) {
        keys.push_back(prompt.home.key(0, kv_head, slot));
        values.push_back(prompt.home.value(0, kv_head, slot));
      }
      const Answer a = attend_one(prompt.query(n, head), keys, values, double(prompt.scale),
                                  prompt.home.layout().dtype);
      const auto row = size_t(n * shape.heads + head), d = size_t(shape.head_dim);
      INFO("position " << n << " head " << head);
      REQUIRE(std::fabs(double(r.lse[row]) - a.lse) <= a.lse_bound);
      for (size_t i = 0; i < d; i++)
        REQUIRE(std::fabs(double(r.out[row * d + i]) - a.out[i]) <= a.out_bound[i]);
    }
}

void check_columns(const PromptRun& prompt, const Columns& columns) {
  const HeadShape shape = prompt.home.shape();
  const int32_t n = prompt.length, group = shape.heads / shape.kv_heads;
  REQUIRE(columns.sum.size() == size_t(n * shape.kv_heads));
  for (int32_t h = 0; h < shape.kv_heads; h++) {
    std::vector<double> sum(size_t(n), 0), last(size_t(n), 0), bound(size_t(n), 0);
    std::vector<std::vector<double>> keys, values;
    for (int32_t position = 0; position < n; position++) {
      keys.push_back(prompt.home.key(0, h, position));
      values.push_back(prompt.home.value(0, h, position));
      for (int32_t g = 0; g < group; g++) {
        const Answer a = attend_one(prompt.query(position, h * group + g), keys, values,
                                    double(prompt.scale), prompt.home.layout().dtype);
        for (size_t key = 0; key < keys.size(); key++) {
          const double p = std::exp(a.logits[key] - a.lse);
          sum[key] += p;
          bound[key] += p * (std::expm1(a.logit_bound + a.lse_bound) + 3e-7 +
                             n * group * std::ldexp(1.0, -24));
          if (position == n - 1) last[key] += p;
        }
      }
    }
    for (size_t key = 0; key < size_t(n); key++) {
      INFO("kv head " << h << " key " << key);
      const size_t i = size_t(h * n) + key;
      REQUIRE(std::fabs(double(columns.sum[i]) - sum[key]) <= bound[key]);
      REQUIRE(std::fabs(double(columns.last[i]) - last[key]) <= bound[key]);
    }
  }
}

}  // namespace hydrant::test
