#include "runtime/backends/cpu/isa.hpp"
#include "runtime/base/error.hpp"
#include "test/support/backend_fixture.hpp"
#include "test/support/random.hpp"

using namespace hydrant;
using namespace hydrant::test;

TEST_CASE("the CPU is a backend, and says what it computes with") {
  const auto best = open_device("cpu", {});
  CHECK(best->name() == "cpu");
  CHECK(best->isa() == cpu::name(cpu::choose_isa("")));
  CHECK(best->threads() >= 1);
  const auto chosen = open_device("cpu", {3, "generic"});
  CHECK(chosen->isa() == "generic");
  CHECK(chosen->threads() == 3);
  CHECK(chosen->describe() == "cpu: generic, 3 threads");
  CHECK(open_device("cpu", {1, "generic"})->describe() == "cpu: generic, 1 thread");
  CHECK(open_device("", {}) != nullptr);
}

TEST_CASE("options that make no sense are refused by name") {
  const auto refused = [](std::string_view name, const DeviceOptions& options, const char* word) {
    try {
      open_device(name, options);
      FAIL_CHECK("opened");
    } catch (const Error& e) {
      CHECK(e.fault() == Fault::bad_config);
      CHECK_THAT(e.what(), Catch::Contains(word));
    }
  };
  refused("gpu", {}, "gpu");
  refused("cpu", {-1, ""}, "threads: -1");
  refused("cpu", {100000, ""}, "threads: 100000");
  refused("cpu", {1, "sse9"}, "sse9");
}

TEST_CASE("memory outlives its device") {
  Buffer buffer = open_device("cpu", {})->allocate(Memory::device, 1 << 22, "a block");
  static_cast<char*>(buffer.data())[(1 << 22) - 1] = 1;
  buffer = {};
}

TEST_CASE("operations enqueued on threads get their arguments by value") {
  Bench bench({"cpu", {}}, /*inline_work=*/false);
  const Tensor in = bench.put(std::vector<float>{1, 2, 3, 4}, {2, 2});
  const Tensor out = bench.make(DType::f32, {2, 1});
  {
    GateArgs args{Activation::none, in, out};
    bench.ops().gate(*bench.stream, args);
    args = {};
  }
  CHECK(bench.get(out) == std::vector<float>{2, 12});
}

TEST_CASE("streams of one device share its threads without mixing their work") {
  constexpr int64_t kRows = 80, kWidth = 600;  // large enough to fork
  constexpr int kLanes = 3, kTimes = 20;
  Bench bench({"cpu", {3, ""}});
  const auto values = Random(9).floats(kRows * kWidth * 2, -3, 3);
  const auto expected = [&] {
    const Tensor out = bench.make(DType::f32, {kRows, kWidth});
    bench.ops().gate(*bench.stream,
                     {Activation::silu, bench.put(values, {kRows, 2 * kWidth}), out});
    return bench.get(out);
  }();
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<Tensor> outs;
  for (int lane = 0; lane < kLanes; lane++) {
    streams.push_back(bench.device->make_stream("lane", false));
    outs.push_back(bench.make(DType::f32, {kRows, kWidth}));
  }
  const Tensor in = bench.put(values, {kRows, 2 * kWidth});
  for (int time = 0; time < kTimes; time++)
    for (int lane = 0; lane < kLanes; lane++)
      bench.ops().gate(*streams[size_t(lane)], {Activation::silu, in, outs[size_t(lane)]});
  for (int lane = 0; lane < kLanes; lane++) {
    streams[size_t(lane)]->synchronize();
    CHECK(same_bits(bench.get(outs[size_t(lane)]), expected));
  }
}
