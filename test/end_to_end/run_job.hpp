// Jobs over tiny models, run through the generator.
#pragma once
#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "policies/budget.hpp"
#include "policies/registry.hpp"
#include "runtime/backends/registry.hpp"
#include "runtime/engine/generator.hpp"
#include "runtime/engine/resident_feed.hpp"
#include "test/end_to_end/naive_model.hpp"
#include "test/end_to_end/tiny_model.hpp"
#include "test/end_to_end/tolerance.hpp"
#include "test/support/test_backend.hpp"

namespace hydrant::test {

struct Engine {
  explicit Engine(const TinyModel& tiny, int threads = 1, std::string_view isa = "")
      : Engine(tiny, open_device(engine_device(), {threads, std::string(isa)})) {}
  Engine(const TinyModel& tiny, std::unique_ptr<Device> on)
      : device(std::move(on)),
        model(tiny),
        weights(on_device(tiny, *device)),
        feed(device->ops(), weights) {}

  Generator generator(BatchShape shape = {}, DType kv = DType::f32) {
    return {*device, model.spec, feed, shape, kv};
  }

  std::unique_ptr<Device> device;
  TinyModel model;
  ModelWeights weights;
  ResidentWeights feed;
};

inline std::vector<policy::RowPlan> plans_of(const ModelSpec& spec, const NaivePolicy& p,
                                             size_t prompt, int32_t max_new_tokens) {
  policy::Budget budget;
  if (p.id != policy::Id::full) {
    if (policy::regions(p.id).sinks) budget.sinks = p.budget.sinks;
    if (policy::regions(p.id).heavy) budget.heavy = p.budget.heavy;
    budget.recent = p.budget.recent;
  }
  return policy::plan({p.id, p.positions, {budget}}, spec.layers, int64_t(prompt), max_new_tokens);
}

inline Request request_of(const ModelSpec& spec, std::vector<int32_t> prompt,
                          int32_t max_new_tokens, const NaivePolicy& p = {}) {
  Request r;
  r.plans = plans_of(spec, p, prompt.size(), max_new_tokens);
  r.prompt = std::move(prompt);
  r.max_new_tokens = max_new_tokens;
  return r;
}

inline std::vector<Completion> run_all(Generator generator, const std::vector<Request>& rows,
                                       RunFigures* figures = nullptr) {
  std::vector<Completion> done(rows.size());
  Listener listener;
  listener.on_done = [&](size_t row, Completion&& c) { done.at(row) = std::move(c); };
  const RunFigures f = generator.run(rows, listener);
  if (figures) *figures = f;
  return done;
}

inline bool same_bits(const Completion& a, const Completion& b) {
  if (a.finish != b.finish || a.kept != b.kept || a.tokens.size() != b.tokens.size()) return false;
  for (size_t t = 0; t < a.tokens.size(); t++)
    if (a.tokens[t].id != b.tokens[t].id || a.tokens[t].logprob != b.tokens[t].logprob)
      return false;
  return true;
}

// What the tested backend promises of a row under another batch, placement or number of lanes: the
// same bits on the CPU; elsewhere the same choices, and log-probabilities that differ by roundings
// of f32, or by `more` where something is rounded to fewer bits.
inline bool same_result(const Completion& a, const Completion& b, double more = 0) {
  if (engine_device() == "cpu") return same_bits(a, b);
  if (a.finish != b.finish || a.kept != b.kept || a.tokens.size() != b.tokens.size()) return false;
  for (size_t t = 0; t < a.tokens.size(); t++)
    if (a.tokens[t].id != b.tokens[t].id ||
        !(std::abs(double(a.tokens[t].logprob) - double(b.tokens[t].logprob)) <=
          kLogprobDifference + more))
      return false;
  return true;
}

}  // namespace hydrant::test
