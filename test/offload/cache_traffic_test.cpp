// What offloaded caches move and take is what was said before.
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "offload/disk_writes.hpp"
#include "runtime/base/aligned.hpp"
#include "test/offload/cache_job.hpp"
#include "test/offload/lane_device.hpp"

using namespace hydrant;
using namespace hydrant::test;
using policy::Id;

namespace {

constexpr int32_t kTokens = 40;
constexpr size_t kUnit = 4096;

// All rows begin together and take one step a token. Of these policies the oldest leaves, so what a
// step writes is known.
std::vector<Request> even_job(const ModelSpec& spec) {
  std::vector<Request> rows;
  const NaivePolicy policies[] = {{Id::full, {}}, {Id::sinks, {2, 0, 21}}, {Id::local, {0, 0, 33}}};
  for (int32_t i = 0; i < 6; i++) {
    std::vector<int32_t> prompt(size_t(3 + 10 * i));
    for (size_t t = 0; t < prompt.size(); t++) prompt[t] = int32_t(7 + i + 3 * int32_t(t)) % 60;
    rows.push_back(request_of(spec, prompt, kTokens, policies[i % 3]));
  }
  return rows;
}

// One row in one layer, counted slot by slot.
class NaiveRow {
 public:
  NaiveRow(const Request& row, size_t layer, size_t slots, size_t heads, size_t run, bool staged,
           bool on_disk)
      : slots_(row.plans[layer].slots),
        head_(slots / 16 * run),
        block_(align_up(head_ * heads, kUnit)),
        heads_(heads),
        run_(run) {
    const auto length = int32_t(row.prompt.size());
    const auto runs_of = [&](int32_t stored) { return size_t(stored + 15) / 16; };
    const int32_t capacity = slots_.capacity();
    const size_t prompt_runs = runs_of(std::min(length, capacity));
    if (staged) moves.to_host += heads * prompt_runs * run;
    if (on_disk) {
      std::set<size_t> units;
      for (size_t h = 0; h < heads; h++)
        for (size_t byte = 0; byte < prompt_runs * run; byte++)
          units.insert((h * head_ + byte) / kUnit);
      moves.written += units.size() * kUnit;
    }
    for (int32_t p = length; p < length + kTokens - 1; p++) {
      if (staged) {
        moves.to_device += heads * runs_of(std::min(p, capacity)) * run;
        moves.to_host += heads * (p >= capacity ? 2 : 1) * run / 16;
      }
      if (!on_disk) continue;
      moves.read += block_;
      decode(p);
    }
  }
  CacheMoves moves;

 private:
  // The tail: the units used latest stay.
  void decode(int32_t position) {
    const size_t slot = size_t(slots_.slot_of(position));
    const size_t units_of_run = run_ % kUnit == 0 ? run_ / kUnit : ceil_div(run_, kUnit) + 1;
    const size_t room = std::min(2 * heads_ * units_of_run, block_ / kUnit);
    std::set<size_t> changed;
    for (size_t h = 0; h < heads_; h++)
      for (size_t byte = 0; byte < run_; byte++)
        changed.insert((h * head_ + slot / 16 * run_ + byte) / kUnit);
    for (const size_t unit : changed) used_[unit] = position;
    while (used_.size() > room) {
      const auto oldest = std::min_element(used_.begin(), used_.end(),
                                           [](auto& a, auto& b) { return a.second < b.second; });
      moves.written += kUnit;
      used_.erase(oldest);
    }
  }
  policy::SlotLayout slots_;
  size_t head_, block_, heads_, run_;
  std::map<size_t, int32_t> used_;
};

KvShape shape_of(const ModelSpec& spec, const std::vector<Request>& rows, const BatchShape& batch,
                 DType dtype) {
  KvShape shape{batch.groups, batch.rows_per_group, spec.block.kv_heads, spec.block.head_dim, {}};
  shape.dtype = dtype;
  for (int32_t layer = 0; layer < spec.layers; layer++) {
    int32_t most = 0;
    for (const Request& r : rows) most = std::max(most, r.plans[size_t(layer)].slots.capacity());
    shape.capacity.push_back(most);
  }
  return shape;
}

}  // namespace

TEST_CASE("bytes that caches move are the bytes predicted, whatever the number of groups",
          "[devices]") {
  for (const char* kind : {"llama", "opt"})
    for (const bool wide : {false, true})
      for (const bool overlap : {true, false})
        for (const CacheCompute compute : {CacheCompute::device, CacheCompute::host})
          for (const int32_t groups : {1, 3}) {
            // On a card that attends only its own, another device has to do the rest: that is
            // test/cuda/host_side_test.cpp. Half of the others are enough there, and have every
            // pair.
            const bool emulated = !test_backend().empty();
            const int odd = (kind[0] == 'o') + wide + overlap + (groups == 3);
            if (emulated && (compute == CacheCompute::host || odd % 2 == 1)) continue;
            // Runs of whole units, or runs that share them.
            const TinyModel model = tiny_model(kind, 1, wide ? 64 : 24);
            const DType kv = wide ? DType::f32 : DType::bf16;
            LaneDevice device;
            const ModelWeights weights = on_device(model, device);
            ResidentWeights feed(device.ops(), weights);
            const std::vector<Request> rows = even_job(model.spec);
            OffloadedCaches homes(
                device,
                {.shares = {20, 45, 35}, .slots = 3, .overlap = overlap, .compute = compute});
            const BatchShape batch{6 / groups, groups, 64, 1000};
            device.copied = 0;
            run_all(Generator(device, model.spec, feed, batch, kv, &homes), rows);

            const KvShape shape = shape_of(model.spec, rows, batch, kv);
            const size_t run = device.ops().kv_run_bytes(kv, model.spec.block.head_dim);
            const bool staged = compute == CacheCompute::device;
            const CacheLayout layout = homes.layout(shape, device.ops());
            CacheMoves said, counted;
            for (size_t i = 0; i < rows.size(); i++) {
              const auto group = int32_t(i) / batch.rows_per_group,
                         place = int32_t(i) % batch.rows_per_group;
              const RowHomes& h = layout.homes(group);
              if (place < h.device) continue;
              for (int32_t layer = 0; layer < model.spec.layers; layer++) {
                const policy::SlotLayout& slots = rows[i].plans[size_t(layer)].slots;
                const auto length = int32_t(rows[i].prompt.size());
                said += layout.prompt_moves(layer, group, place, length, slots);
                if (place >= h.first_on_disk())
                  said.written += decode_written(layout, layer, slots, length, kTokens - 1).value();
                for (int32_t p = length; p < length + kTokens - 1; p++)
                  said += layout.decode_moves(layer, group, place, p, slots);
                counted += NaiveRow(rows[i], size_t(layer), size_t(slots_in(shape, size_t(layer))),
                                    size_t(model.spec.block.kv_heads), run, staged,
                                    place >= h.first_on_disk())
                               .moves;
              }
            }
            CAPTURE(kind, name(kv), overlap, int(compute), groups);
            const CacheTraffic& moved = homes.traffic();
            CHECK(moved.to_device == counted.to_device);
            CHECK(moved.to_host == counted.to_host);
            CHECK(moved.read == counted.read);
            CHECK(moved.written == counted.written);
            CHECK(counted.read > 0);
            CHECK((counted.to_device > 0) == staged);
            CHECK(said == counted);
            if (overlap) CHECK(device.copied == counted.to_device);
          }
}

TEST_CASE("what is written is known before, unless it depends on attention who leaves") {
  const auto device = open_device("cpu", {1, ""});
  const CacheLayout layout({1, 1, 2, 64, {64}, DType::f32}, {0, 0, 100}, /*staged=*/false,
                           device->ops());
  const policy::SlotLayout h2o{0, 16, 32};
  CHECK(decode_written(layout, 0, h2o, 20, 28).has_value());  // nobody leaves
  CHECK_FALSE(decode_written(layout, 0, h2o, 20, 29).has_value());
  CHECK(decode_written(layout, 0, {4, 0, 44}, 20, 100).has_value());
}

TEST_CASE("what the cache takes is what was said", "[devices]") {
  for (const CacheCompute compute : {CacheCompute::device, CacheCompute::host}) {
    const TinyModel model = tiny_model("llama", 1);
    LaneDevice device;
    if (compute == CacheCompute::host && !device.is_host()) continue;
    const std::vector<Request> rows = even_job(model.spec);
    OffloadedCaches homes(device, {.shares = {20, 45, 35}, .slots = 3, .compute = compute});
    KvShape shape = shape_of(model.spec, rows, {3, 2, 64, 1000}, DType::f32);
    const CacheNeed said = homes.need(shape, device.ops());
    shape.resident = homes.resident(shape);
    CHECK(shape.resident == std::vector<int32_t>{1, 0});
    const KvCache cache(device, shape);
    const size_t before = device.on_device;
    const auto feed = homes.open(device, shape, cache);
    CHECK(device.on_device - before == said.ring);
    CHECK(device.on_host == said.host + said.staging);
    CHECK((said.ring > 0) == (compute == CacheCompute::device));
    // Homes of three rows of six; two in the file.
    size_t row = 0, block = 0;
    for (size_t layer = 0; layer < shape.capacity.size(); layer++) {
      row += place_bytes(shape, layer, device.ops());
      block += align_up(place_bytes(shape, layer, device.ops()), kUnit);
    }
    CHECK(said.host == 3 * row);
    CHECK(said.disk == 2 * block);
  }
}

TEST_CASE("rows are placed by their share, over the groups") {
  using Homes = std::vector<RowHomes>;
  CHECK(place_rows({100, 0, 0}, 2, 3) == Homes{{3, 0, 0}, {3, 0, 0}});
  CHECK(place_rows({25, 25, 50}, 1, 8) == Homes{{2, 2, 4}});
  CHECK(place_rows({50, 50, 0}, 4, 1) == Homes{{1, 0, 0}, {0, 1, 0}, {1, 0, 0}, {0, 1, 0}});
  for (int32_t groups = 1; groups < 5; groups++)
    for (int32_t rows = 1; rows < 7; rows++)
      for (int device = 0; device <= 100; device += 10)
        for (int host = 0; device + host <= 100; host += 10) {
          RowHomes sum;
          for (const RowHomes& h : place_rows(
                   {double(device), double(host), double(100 - device - host)}, groups, rows)) {
            REQUIRE(h.device + h.host + h.disk == rows);
            sum = {sum.device + h.device, sum.host + h.host, sum.disk + h.disk};
          }
          const double all = groups * rows;
          REQUIRE(std::abs(sum.device - all * device / 100) <= 1);
          REQUIRE(std::abs(sum.disk - all * (100 - device - host) / 100) <= 1.5);
          if (device == 0) REQUIRE(sum.device == 0);
          if (host == 0 && device == 100) REQUIRE(sum.device == all);
          if (device + host == 100) REQUIRE(sum.disk == 0);
        }
}
