#include "test/offload/cache_job.hpp"

#include "test/support/random.hpp"

namespace hydrant::test {

std::vector<Request> cache_job(const ModelSpec& spec, int rows, uint64_t seed) {
  using policy::Id;
  const NaivePolicy policies[] = {
      {Id::full, {}},
      {Id::h2o, {0, 5, 4}},
      {Id::sinks, {2, 0, 7}},
      {Id::tova, {0, 9, 1}},
      {Id::h2o, {0, 11, 0}},
      {Id::local, {0, 0, 20}},
      {Id::h2o_promote, {0, 18, 17}},
      {Id::h2o,
       {0, 7, 3},
       spec.block.rotary.dims ? policy::Positions::cache : policy::Positions::original}};
  Random random(seed);
  const auto first = size_t(random.below(std::size(policies)));
  std::vector<Request> job;
  for (int i = 0; i < rows; i++) {
    std::vector<int32_t> prompt(size_t(1 + random.below(50)));
    for (int32_t& id : prompt) id = int32_t(random.below(spec.vocab));
    job.push_back(request_of(spec, prompt, int32_t(1 + random.below(24)),
                             policies[(first + size_t(i)) % std::size(policies)]));
    job.back().report_kept = true;
  }
  return job;
}

std::vector<Completion> run_with_caches(Engine& engine, const std::vector<Request>& rows,
                                        const BatchShape& shape, DType kv, CacheHomes& homes) {
  return run_all(Generator(*engine.device, engine.model.spec, engine.feed, shape, kv, &homes),
                 rows);
}

}  // namespace hydrant::test
