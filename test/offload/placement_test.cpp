#include "offload/placement.hpp"

#include <catch2/catch.hpp>
#include <map>

#include "test/support/random.hpp"
#include "test/support/refusal.hpp"

using namespace hydrant;
using namespace hydrant::test;

namespace {

struct Bytes {
  double all = 0, device = 0, host = 0, disk = 0;
  void add(const MatrixSize& m, const PanelHomes& h) {
    const auto panel = double(m.panel_bytes);
    all += panel * double(m.panels);
    device += panel * double(h.device);
    host += panel * double(h.host);
    disk += panel * double(h.disk);
  }
};

std::vector<MatrixSize> random_model(Random& random) {
  std::vector<MatrixSize> matrices;
  const auto add = [&](int stage, bool table) {
    matrices.push_back({stage, 1 + random.below(200), size_t(64 * (1 + random.below(100))), table});
  };
  const auto layers = int(1 + random.below(12));
  if (random.below(2)) add(0, true);
  if (random.below(2)) add(0, true);
  if (random.below(2)) add(0, false);
  for (int layer = 1; layer <= layers; layer++)
    for (int i = 0; i < 7; i++) add(layer, false);
  add(layers + 1, false);
  return matrices;
}

}  // namespace

TEST_CASE("shares hold within one panel, in every stage and over the model") {
  Random random(5);
  for (int trial = 0; trial < 2000; trial++) {
    const std::vector<MatrixSize> matrices = random_model(random);
    const double device = double(random.below(101)),
                 host = random.below(3) ? double(random.below(int64_t(101 - device))) : 0;
    const Shares shares{device, host, 100 - device - host};
    const std::vector<PanelHomes> homes = place_weights(matrices, shares);
    CAPTURE(trial, device, host);
    REQUIRE(homes == place_weights(matrices, shares));
    Bytes model, multiplying, tables;
    std::map<int, Bytes> stages;
    std::map<int, int> cut;
    double panel = 0;
    for (size_t i = 0; i < homes.size(); i++) {
      const PanelHomes& h = homes[i];
      REQUIRE(h.device >= 0);
      REQUIRE(h.host >= 0);
      REQUIRE(h.disk >= 0);
      REQUIRE(h.device + h.host + h.disk == matrices[i].panels);
      panel = std::max(panel, double(matrices[i].panel_bytes));
      model.add(matrices[i], h);
      (matrices[i].only_looked_up ? tables : multiplying).add(matrices[i], h);
      if (matrices[i].only_looked_up) continue;
      stages[matrices[i].stage].add(matrices[i], h);
      cut[matrices[i].stage] += h.device > 0 && h.device < matrices[i].panels;
    }
    REQUIRE(std::abs(model.device - model.all * shares.device / 100) <= panel);
    REQUIRE(std::abs(model.host - model.all * shares.host / 100) <= 2 * panel);
    REQUIRE(std::abs(model.disk - model.all * shares.disk / 100) <= panel);
    // Tables take the slower homes first.
    if (tables.device > 0) REQUIRE(multiplying.host + multiplying.disk <= 2 * panel);
    if (tables.host > 0) REQUIRE(multiplying.disk <= 2 * panel);
    for (const auto& [stage, b] : stages) {
      REQUIRE(cut[stage] <= 1);
      REQUIRE(std::abs(b.device - b.all * multiplying.device / multiplying.all) <= 2 * panel);
      REQUIRE(std::abs(b.disk - b.all * multiplying.disk / multiplying.all) <= 2 * panel);
    }
    if (device == 0) REQUIRE(model.device == 0);
    if (device == 100) REQUIRE(model.device == model.all);
    if (host == 0) REQUIRE(model.host == 0);
    if (shares.disk == 0) REQUIRE(model.disk == 0);
  }
}

TEST_CASE("a stage is cut by bytes, not by matrices") {
  const std::vector<MatrixSize> stage{{1, 10, 64}, {1, 10, 64}, {1, 5, 256}};  // 2560 bytes
  const auto homes = place_weights(stage, {40, 35, 25});                       // 1024, 896, 640
  CHECK(homes == std::vector<PanelHomes>{{10, 0, 0}, {6, 4, 0}, {0, 3, 2}});
}

TEST_CASE("shares that cannot be are refused with their sum") {
  const std::vector<MatrixSize> stage{{1, 10, 64}};
  const auto refused = [&](Shares shares) {
    return refusal(Fault::bad_config, [&] { place_weights(stage, shares); });
  };
  CHECK(refused({80, 80, -60}) == "placement.weights.disk: -60 percent, must be 0 to 100");
  CHECK(refused({50, 50, 50}) ==
        "placement.weights: device 50 + host 50 + disk 50 is 150 percent, must be 100");
  CHECK(refused({30, 30, 40}) == "nothing was refused");
}
