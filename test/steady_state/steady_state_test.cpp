// A decode step allocates nothing: counted by replacing operator new for this executable.
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <new>

#include "test/end_to_end/run_job.hpp"

namespace {
std::atomic<int64_t> allocations{0};
}

void* operator new(size_t bytes) {
  allocations++;
  if (void* at = std::malloc(bytes)) return at;
  throw std::bad_alloc();
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  allocations++;
  return std::malloc(bytes);
}
void operator delete(void* at) noexcept { std::free(at); }
void operator delete(void* at, const std::nothrow_t&) noexcept { std::free(at); }
void operator delete(void* at, size_t) noexcept { std::free(at); }

using namespace hydrant;
using namespace hydrant::test;
using policy::Id;

TEST_CASE("nothing is allocated in the steady state", "[steady]") {
  for (const std::string& kind : tiny_kinds()) {
    Engine engine(tiny_model(kind, 3), 2);
    std::vector<Request> rows;
    for (const NaivePolicy& p : std::vector<NaivePolicy>{
             {Id::full, {}}, {Id::h2o, {0, 6, 6}}, {Id::sinks, {2, 0, 8}}, {Id::tova, {0, 10, 1}}})
      rows.push_back(request_of(engine.model.spec, {5, 9, 2, 33, 17, 8, 21}, 40, p));
    rows[1].sampling.temperature = 0.7f;
    rows[1].sampling.top_p = 0.9f;
    rows[1].sampling.repetition_penalty = 1.2f;
    std::vector<int> tokens(rows.size());
    int64_t before = 0, after = 0;
    Listener listener;
    listener.on_token = [&](size_t row, const TokenChoice&) {
      if (++tokens[row] == 5 && row == 0) before = allocations;
      if (tokens[row] == 35 && row == 0) after = allocations;
      return true;
    };
    engine.generator({2, 2, 64, 64}).run(rows, listener);
    CAPTURE(kind);
    CHECK(after - before == 0);
    CHECK(tokens == std::vector<int>(rows.size(), 40));
  }
}
