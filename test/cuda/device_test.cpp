// The device: memory, streams and events as stream.hpp has them.
#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <thread>

#include "runtime/base/error.hpp"
#include "runtime/device/copied_memory.hpp"
#include "test/cuda/emu/fake_runtime.hpp"
#include "test/support/backend_fixture.hpp"
#include "test/support/random.hpp"
#include "test/support/refusal.hpp"

using namespace hydrant;
using namespace hydrant::test;

namespace {

std::unique_ptr<Device> open_cuda() { return open_device("cuda", {}); }

// Opens when the test likes.
class Gate {
 public:
  void open() { open_ = true; }
  void hold(Stream& stream) {
    stream.fill(nullptr, 0, [this] {
      while (!open_) std::this_thread::yield();
    });
  }

 private:
  std::atomic<bool> open_{false};
};

void fail_with(Stream& stream, const char* what) {
  stream.fill(nullptr, 0, [what] { throw std::runtime_error(what); });
}

}  // namespace

// What `say` says in a process of its own, for the emulator reads its environment once: no test
// before may have used it.
template <class Say>
std::string said_with(const char* variable, const char* value, const Say& say) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    setenv(variable, value, 1);
    const std::string said = say();
    _exit(write(ends[1], said.data(), said.size()) == ssize_t(said.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string said(1000, ' ');
  const ssize_t size = read(ends[0], said.data(), said.size());
  said.resize(size_t(std::max<ssize_t>(size, 0)));
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return said;
}

std::string refusal_with(const char* variable, const char* value) {
  return said_with(variable, value, [] {
    return refusal(Fault::bad_config, [] { open_device("cuda", {}); }) +
           "; default: " + std::string(open_device("", {})->name());
  });
}

TEST_CASE("without a device, a driver or one that is new enough the reason is said") {
  CHECK(refusal_with("EMU_DEVICES", "0") ==
        "device: cuda cannot be used: no NVIDIA driver is installed; default: cpu");
  CHECK(refusal_with("EMU_DRIVER", "11040") ==
        "device: cuda cannot be used: the NVIDIA driver is for CUDA 11.4, this program needs one "
        "for " +
            std::to_string(CUDART_VERSION / 1000) + ".0 or later; default: cpu");
  CHECK(refusal_with("EMU_SM", "61") ==
        "device: cuda cannot be used: no NVIDIA device of compute capability 7.5 or later; "
        "default: cpu");
}

// The default's name, and what was said on standard error.
std::string chosen_with(const char* variable, const char* value) {
  return said_with(variable, value, [] {
    int ends[2];
    if (pipe(ends) != 0 || dup2(ends[1], STDERR_FILENO) < 0) return std::string("no pipe");
    std::string all(open_device("", {})->name());
    for (int again = 0; again < 2; again++) open_device("auto", {});  // says no more
    close(ends[1]), close(STDERR_FILENO);
    char some[500];
    for (ssize_t size = 0; (size = read(ends[0], some, sizeof some)) > 0;)
      all += "; " + std::string(some, size_t(size));
    return all;
  });
}

TEST_CASE("a card that is there and cannot be used is not passed over in silence") {
  const std::string said = "cpu; hydrant: warning: device: cuda cannot be used: ";
  const auto check = [&](const char* variable, const char* value, const std::string& why) {
    const std::string line = chosen_with(variable, value);
    CAPTURE(line);
    CHECK_THAT(line, Catch::StartsWith(said + why) && Catch::Contains("; cpu: ") &&
                         Catch::EndsWith(" is used\n"));
    CHECK(std::count(line.begin(), line.end(), '\n') == 1);
  };
  check("EMU_DRIVER", "11040", "the NVIDIA driver is for CUDA 11.4, this program needs one for ");
  check("EMU_SM", "61", "no NVIDIA device of compute capability 7.5 or later");
  check("EMU_START", "2", "device: cuda:0: no memory left there for one more program");
  check("EMU_START", "46", "device: cuda:0: it takes no program, or no other");
  check("EMU_CODE", "0",
        "device: cuda:0: this program was built without code for compute capability 8.0");
  CHECK(chosen_with("EMU_DEVICES", "0") == "cpu");
  CHECK(chosen_with("EMU_DEVICES", "1") == "cuda");
}

TEST_CASE("where so much cannot be pinned, what is only copied lies in pageable memory") {
  CHECK(said_with("EMU_PIN_KB", "1024", [] {
          const auto device = open_cuda();
          Buffer home = allocate_for_copies(*device, 2 << 20, "a home");
          static_cast<char*>(home.data())[(2 << 20) - 1] = 7;
          const auto stream = device->make_stream("load", false);
          Buffer there = device->allocate(Memory::device, 1, "a byte");
          char back = 0;
          stream->copy(there.data(), static_cast<char*>(home.data()) + (2 << 20) - 1, 1);
          stream->copy(&back, there.data(), 1);
          stream->synchronize();
          return std::string(home.memory() == Memory::pageable && back == 7 ? "pageable" : "?") +
                 "; " + refusal(Fault::out_of_memory, [&] {
                          device->allocate(Memory::pinned, 2 << 20, "a cache");
                        }).substr(0, 51);
        }) == "pageable; a cache: the system does not pin 2097152 bytes, of ");
}

TEST_CASE("the device says what it is, and is the default where it answers") {
  const auto device = open_cuda();
  CHECK(device->name() == "cuda");
  CHECK(device->isa().substr(0, 3) == "sm_");
  CHECK_FALSE(device->is_host());
  CHECK(device->threads() >= 1);
  CHECK(open_device("cuda", {3, ""})->threads() == 3);  // that load weights
  CHECK(open_device("", {})->name() == "cuda");
  CHECK_THAT(refusal(Fault::bad_config,
                     [] {
                       open_device("cuda", {0, "avx2"});
                     }),
             Catch::Contains("isa: 'avx2'"));
}

TEST_CASE("memory: what does not fit is refused by name, with what is there") {
  const auto device = open_cuda();
  const size_t left = device->available(Memory::device);
  Buffer half = device->allocate(Memory::device, left / 2, "a half");
  CHECK(device->available(Memory::device) == left - left / 2);
  const std::string said = refusal(
      Fault::out_of_memory, [&] { device->allocate(Memory::device, left, "the other half"); });
  CHECK_THAT(said, Catch::StartsWith("the other half: " + std::to_string(left) + " bytes wanted"));
  half = {};
  CHECK(device->available(Memory::device) == left);
  CHECK(device->allocate(Memory::device, 0, "nothing").data() == nullptr);
  CHECK_THAT(refusal(Fault::out_of_memory,
                     [&] { device->allocate(Memory::pinned, size_t{1} << 50, "a home"); }),
             Catch::StartsWith("a home: "));
  Buffer pinned = device->allocate(Memory::pinned, 100, "a ring");
  CHECK(pinned.memory() == Memory::pinned);
  Buffer plain = device->allocate(Memory::pageable, 100, "a block");
  static_cast<char*>(plain.data())[99] = 1;
}

TEST_CASE("copies go in order, from and to every kind of memory") {
  const auto device = open_cuda();
  for (const bool inline_work : {false, true}) {
    const auto stream = device->make_stream("load", inline_work);
    CHECK(stream->lane() == "load");
    Buffer on_device = device->allocate(Memory::device, 12, "a block");
    Buffer pinned = device->allocate(Memory::pinned, 12, "a ring");
    auto* const middle = static_cast<int*>(pinned.data());
    std::vector<int> from{1, 2, 3}, to(3);
    stream->copy(on_device.data(), from.data(), 12);
    stream->copy(middle, on_device.data(), 12);
    stream->fill(middle, 12, [middle] { middle[1] = 7; });
    stream->copy(on_device.data(), middle, 12);
    stream->fill(middle, 12, [middle] { middle[0] = 9; });  // after the copy has been read from it
    stream->copy(to.data(), on_device.data(), 12);
    stream->copy(nullptr, nullptr, 0);
    stream->synchronize();
    CHECK(to == std::vector<int>{1, 7, 3});
  }
}

TEST_CASE("a wait names the record made before it, and never recorded is no wait") {
  const auto device = open_cuda();
  const auto producer = device->make_stream("load", false),
             consumer = device->make_stream("compute", false);
  const auto event = device->make_event();
  consumer->wait(*event);
  consumer->synchronize();
  Gate first, second;
  std::atomic<bool> saw{false};
  first.hold(*producer);
  producer->record(*event);
  consumer->wait(*event);
  consumer->fill(nullptr, 0, [&] { saw = true; });
  second.hold(*producer);
  producer->record(*event);
  CHECK_FALSE(saw);
  first.open();
  consumer->synchronize();  // would hang if it waited for the second record
  CHECK(saw);
  second.open();
  producer->synchronize();
}

TEST_CASE("a failure is sticky, skips later work of the host and reaches who waits for it") {
  const auto device = open_cuda();
  for (const bool inline_producer : {false, true})
    for (const bool inline_consumer : {false, true}) {
      const auto producer = device->make_stream("load", inline_producer),
                 consumer = device->make_stream("compute", inline_consumer);
      const auto good = device->make_event(), bad = device->make_event();
      bool ran_before = false, ran_after = false, ran_behind = false;
      producer->record(*good);
      fail_with(*producer, "disk gone");
      fail_with(*producer, "second");
      producer->fill(nullptr, 0, [&] { ran_behind = true; });
      producer->record(*bad);
      consumer->wait(*good);
      consumer->fill(nullptr, 0, [&] { ran_before = true; });
      consumer->wait(*bad);
      consumer->fill(nullptr, 0, [&] { ran_after = true; });
      CHECK_THROWS_WITH(consumer->synchronize(), "disk gone");
      CHECK_THROWS_WITH(producer->synchronize(), "disk gone");
      CHECK_THROWS_WITH(producer->synchronize(), "disk gone");
      CHECK(ran_before);
      CHECK_FALSE(ran_after);
      CHECK_FALSE(ran_behind);
    }
}

// Cells are copied from one another by one lane at a time, handed over by events: any number of
// lanes must do what one does.
TEST_CASE("lanes ordered by events agree with a single lane") {
  constexpr int kCells = 6, kSteps = 300;
  const auto device = open_cuda();
  const auto run = [&](int lanes, bool first_inline) {
    Random random(7);
    std::vector<Buffer> cells;
    std::vector<std::unique_ptr<Event>> touched;
    std::vector<std::unique_ptr<Stream>> streams;
    for (int i = 0; i < lanes; i++)
      streams.push_back(device->make_stream("lane", first_inline && i == 0));
    for (int i = 0; i < kCells; i++) {
      cells.push_back(device->allocate(Memory::device, 8, "a cell"));
      touched.push_back(device->make_event());
    }
    std::vector<uint64_t> salts(kSteps + kCells), result(kCells);
    for (uint64_t& salt : salts) salt = random.bits();
    for (size_t i = 0; i < kCells; i++)
      streams[0]->copy(cells[i].data(), &salts[kSteps + i], 8), streams[0]->record(*touched[i]);
    for (size_t step = 0; step < kSteps; step++) {
      const auto to = size_t(random.below(kCells)), from = size_t(random.below(kCells));
      Stream& stream = *streams[step % size_t(lanes)];
      stream.wait(*touched[to]);
      stream.wait(*touched[from]);
      stream.copy(cells[to].data(), step % 5 ? cells[from].data() : &salts[step], 8);
      stream.record(*touched[to]);
      stream.record(*touched[from]);
    }
    for (const auto& stream : streams) stream->synchronize();
    for (size_t i = 0; i < kCells; i++) streams[0]->copy(&result[i], cells[i].data(), 8);
    streams[0]->synchronize();
    return result;
  };
  const auto expected = run(1, true);
  for (int lanes = 1; lanes <= 4; lanes++)
    for (const bool first_inline : {false, true}) CHECK(run(lanes, first_inline) == expected);
}

TEST_CASE(
    "a device that is lost fails every lane with one message, and memory can still be freed") {
  Bench bench({"cuda", {}});
  const Tensor in = bench.put(std::vector<float>{1, 2, 3, 4}, {1, 4});
  const Tensor out = bench.make(DType::f32, {1, 2});
  emu::break_device(cudaErrorIllegalAddress);
  bench.ops().gate(*bench.stream, {Activation::silu, in, out});
  const std::string said = refusal(Fault::io, [&] { bench.stream->synchronize(); });
  emu::break_device(cudaSuccess);
  CHECK_THAT(said, Catch::StartsWith("cuda: "));
}
