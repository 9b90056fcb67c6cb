#include "runtime/kv/kv_cache.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "runtime/backends/registry.hpp"
#include "runtime/base/aligned.hpp"
#include "runtime/base/error.hpp"
#include "test/support/test_backend.hpp"

namespace hydrant::test {
namespace {

using policy::Id;
using policy::Positions;
using policy::RowPlan;

KvShape small() {
  return {
      .groups = 2, .rows_per_group = 3, .kv_heads = 2, .head_dim = 24, .capacity = {15, 16, 40}};
}

std::unique_ptr<Device> any_device() { return open_device(engine_device(), {}); }

// What a view shows may be where the host cannot reach.
class Reach {
 public:
  explicit Reach(Device& device) : stream_(device.make_stream("test", /*inline_work=*/true)) {}
  template <class T>
  void put(T* at, const T& value) {
    put(at, &value, 1);
  }
  template <class T>
  void put(T* at, const T* values, size_t count) {
    stream_->copy(at, values, count * sizeof(T));
    stream_->synchronize();
  }
  template <class T>
  std::vector<T> get(const T* at, size_t count) {
    std::vector<T> values(count);
    stream_->copy(values.data(), at, count * sizeof(T));
    stream_->synchronize();
    return values;
  }
  template <class T>
  T get(const T* at) {
    return get(at, 1)[0];
  }

 private:
  std::unique_ptr<Stream> stream_;
};

TEST_CASE("the bytes of the homes are the formula's", "[devices]") {
  const auto device = any_device();
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    KvShape shape = small();
    shape.dtype = dtype;
    const size_t element = dtype == DType::f32 ? 4 : 2;
    // ceil16(15 + 1) + ceil16(16 + 1) + ceil16(40 + 1) slots; 8: score and position
    const size_t expected = 2 * 3 * 2 * (16 + 32 + 48) * (2 * 24 * element + 8);
    CHECK(kv_bytes(shape, device->ops()) == expected);
    CHECK(KvCache(*device, shape).bytes() == expected);
  }
}

TEST_CASE("a size that no machine has is refused in words", "[devices]") {
  const auto device = any_device();
  KvShape shape = small();
  shape.groups = shape.rows_per_group = shape.kv_heads = 1 << 30;
  CHECK_THROWS_WITH(KvCache(*device, shape), Catch::Contains("more than 2^64 bytes"));
  shape.groups = shape.kv_heads = 2;
  try {
    KvCache(*device, shape);
    FAIL("was not refused");
  } catch (const Error& e) {
    CHECK(e.fault() == Fault::out_of_memory);
    CHECK_THAT(e.what(), Catch::Contains("the KV cache"));
  }
}

TEST_CASE("homes do not overlap, and each part of them can be written", "[devices]") {
  const auto device = any_device();
  KvCache cache(*device, small());
  Reach memory(*device);
  std::set<const void*> seen;
  int32_t number = 0;
  const auto each_position = [&](auto&& use) {
    for (int32_t layer = 0; layer < 3; layer++)
      for (int32_t group = 0; group < 2; group++)
        for (int32_t place = 0; place < 3; place++)
          for (int32_t head = 0; head < 2; head++) {
            const CacheView view = cache.home(layer, group);
            for (int32_t slot = 0; slot < view.slots; slot++)
              use(view, place, head, slot, number++);
          }
  };
  each_position([&](const CacheView& v, int32_t place, int32_t head, int32_t slot, int32_t n) {
    memory.put(v.positions_of(place, head) + slot, n);
    memory.put(v.scores_of(place, head) + slot, float(n) + 0.5f);
    memory.put(v.victim + v.head_index(place, head), -1 - n);
    std::byte* const run = v.row(place).data + size_t(head) * v.kv.head_bytes +
                           size_t(slot / kRunSlots) * v.kv.run_bytes;
    const std::vector<std::byte> content(v.kv.run_bytes, std::byte(n % 251));
    memory.put(run, content.data(), content.size());
    seen.insert(run);
  });
  CHECK(seen.size() == 2 * 3 * 2 * (1 + 2 + 3));
  number = 0;
  each_position([&](const CacheView& v, int32_t place, int32_t head, int32_t slot, int32_t n) {
    REQUIRE(memory.get(v.positions_of(place, head) + slot) == n);
    REQUIRE(memory.get(v.scores_of(place, head) + slot) == float(n) + 0.5f);
    if (slot == v.slots - 1) REQUIRE(memory.get(v.victim + v.head_index(place, head)) == -1 - n);
    if (slot % kRunSlots != kRunSlots - 1) return;
    const std::byte* const run = v.row(place).data + size_t(head) * v.kv.head_bytes +
                                 size_t(slot / kRunSlots) * v.kv.run_bytes;
    const std::vector<std::byte> bytes = memory.get(run, v.kv.run_bytes);
    for (size_t i = 0; i < bytes.size(); i++)
      if (bytes[i] != std::byte(n % 251)) FAIL("byte " << i << " of the run of slot " << slot);
  });
}

TEST_CASE("a view says what was asked for, and shows the plans of later rows too", "[devices]") {
  const auto device = any_device();
  KvCache cache(*device, small());
  const CacheView view = cache.home(1, 1);
  CHECK(view.slots == 32);
  CHECK(view.places == 3);
  CHECK(view.kv_heads == 2);
  CHECK(view.head_dim == 24);
  CHECK(view.kv.run_bytes == device->ops().kv_run_bytes(DType::f32, 24));
  CHECK(reinterpret_cast<uintptr_t>(view.kv.data) % 64 == 0);

  std::vector<RowPlan> plans;
  for (const int32_t capacity : {15, 16, 30})
    plans.push_back({{0, capacity - 5, 5}, Id::h2o, Positions::cache, true});
  cache.admit(1, 2, plans);
  CHECK(view.plans[2].slots == plans[1].slots);
  CHECK(view.plans[2].positions == Positions::cache);
  CHECK(cache.home(2, 1).plans[2].slots == plans[2].slots);
  CHECK(cache.home(1, 0).plans[2].slots.capacity() == 0);  // another group

  plans[2].slots.heavy += 11;  // 41 of 40
  CHECK_THROWS_WITH(cache.admit(1, 2, plans), Catch::Contains("41 slots for a place of 40"));
  plans.pop_back();
  CHECK_THROWS_WITH(cache.admit(1, 2, plans), Catch::Contains("2 layers of 3"));
}

TEST_CASE("keys and values may be elsewhere, scores and positions are here", "[devices]") {
  const auto device = any_device();
  KvShape shape = small();
  shape.resident = {2, 0};
  CHECK(place_bytes(shape, 1, device->ops()) == 2 * 32 * (2 * 24 * 4));
  const size_t slots = 16 + 32 + 48;
  CHECK(kv_bytes(shape, device->ops()) == 2 * 2 * slots * (2 * 24 * 4) + 2 * 3 * 2 * slots * 8);
  KvCache cache(*device, shape);
  CHECK(cache.home(1, 0).places == 2);
  CHECK(cache.home(1, 1).places == 0);
  Reach memory(*device);
  for (const int32_t group : {0, 1}) {
    const CacheView view = cache.home(1, group);
    memory.put(view.positions_of(2, 1) + 31, 7 + group);
    memory.put(view.victim + view.head_index(2, 1), 7 + group);
  }
  CHECK(memory.get(cache.home(1, 0).positions_of(2, 1) + 31) == 7);
  cache.admit(1, 2, std::vector<RowPlan>(3, {{1, 3, 2}, Id::h2o, Positions::original, true}));
  CHECK(cache.home(0, 1).plans[2].slots.heavy == 3);
}

TEST_CASE("what the host attends has its scores and positions there", "[devices]") {
  const auto device = any_device();
  KvShape shape = small();
  shape.resident = {2, 0};
  shape.host_attends = true;
  const size_t slots = 16 + 32 + 48;
  CHECK(kv_bytes(shape, device->ops()) == 2 * 2 * slots * (2 * 24 * 4 + 8));
  // Places are found by their numbers, those of the device's rows are left unused; victims.
  const size_t scores = 2 * 3 * 2 * slots * 8;
  CHECK(KvCache::host_bytes(shape) >= scores + 3 * 2 * 3 * 2 * 4);
  CHECK(KvCache::host_bytes(shape) <= scores + 3 * 2 * 3 * 64);
  KvCache cache(*device, shape);
  CHECK(cache.bytes() == kv_bytes(shape, device->ops()) + KvCache::host_bytes(shape));
  const auto stream = device->make_stream("test", true);
  Reach memory(*device);
  const RowPlan plan{{1, 3, 2}, Id::h2o, Positions::original, true};
  cache.admit(0, 1, std::vector<RowPlan>(3, plan));
  cache.admit(0, 2, std::vector<RowPlan>(3, plan));
  for (const auto& [place, view] :
       {std::pair(1, cache.home(1, 0)), std::pair(2, cache.host_side(1, 0))})
    for (int32_t head = 0; head < 2; head++)
      for (int32_t slot = 0; slot < 6; slot++)
        memory.put(view.positions_of(place, head) + slot, 100 * place + 10 * head + 5 - slot);
  using Kept = std::vector<std::vector<int32_t>>;
  CHECK(cache.kept(*stream, 1, 0, 1, 3) == Kept{{103, 104, 105}, {113, 114, 115}});
  CHECK(cache.kept(*stream, 1, 0, 2, 3) == Kept{{203, 204, 205}, {213, 214, 215}});
  CHECK(cache.host_side(1, 1).plans == cache.home(1, 1).plans);
  shape.resident = {};
  CHECK(KvCache::host_bytes(shape) == 0);
}

TEST_CASE("kept positions come ascending, as many as are stored", "[devices]") {
  const auto device = any_device();
  const auto stream = device->make_stream("test", false);
  KvCache cache(*device, small());
  const RowPlan plan{{1, 3, 2}, Id::h2o, Positions::original, true};
  cache.admit(0, 1, std::vector<RowPlan>(3, plan));
  const CacheView view = cache.home(2, 0);
  Reach memory(*device);
  for (int32_t head = 0; head < 2; head++)
    for (int32_t slot = 0; slot <= 6; slot++)
      memory.put(view.positions_of(1, head) + slot, slot == 0 ? 0 : 50 + head * 10 - slot);
  CHECK(cache.kept(*stream, 2, 0, 1, 3) ==
        std::vector<std::vector<int32_t>>{{0, 48, 49}, {0, 58, 59}});
  CHECK(cache.kept(*stream, 2, 0, 1, 60) ==
        std::vector<std::vector<int32_t>>{{0, 45, 46, 47, 48, 49}, {0, 55, 56, 57, 58, 59}});
}

}  // namespace
}  // namespace hydrant::test
