#include "runtime/model/row_reader.hpp"

#include <catch2/catch.hpp>
#include <cstring>
#include <numeric>
#include <set>

#include "runtime/model/safetensors.hpp"
#include "test/support/checkpoint_writer.hpp"
#include "test/support/random.hpp"
#include "test/support/temporary_folder.hpp"

namespace hydrant::test {
namespace {

TEST_CASE("rows of several tensors are read in any order, with repeats and holes") {
  const TemporaryFolder folder;
  const int64_t n = 2000, k = 3;  // 24 KB, of which a file has some blocks
  std::vector<float> values(size_t(n * k)), others(size_t(n / 4 * k));
  std::iota(values.begin(), values.end(), 0.0f);
  std::iota(others.begin(), others.end(), 1e6f);
  folder.write("model.safetensors", safetensors_bytes({f32_tensor("w", {n, k}, values),
                                                       f32_tensor("x", {n / 4, k}, others)}));
  const Checkpoint cached = open_safetensors(folder.path());
  const bool direct = GENERATE(false, true);  // where the test's folder has direct reads
  const Checkpoint checkpoint =
      direct ? cached.reopened(Caching::direct) : cached.reopened(Caching::cached);
  RowReader reader(checkpoint);
  Random random(1);
  const StoredTensor &w = *checkpoint.find("w"), &x = *checkpoint.find("x");
  const auto row = size_t(k) * sizeof(float);
  for (int round = 0; round < 200; round++) {
    std::vector<StoredRow> wanted(size_t(random.below(40)));
    const int64_t width = 1 + random.below(n / 4);  // narrow: many repeats and neighbours
    std::set<uint64_t> places;
    for (StoredRow& r : wanted) {
      r = {random.below(3) ? &w : &x, random.below(width)};
      places.insert(r.tensor->offset + uint64_t(r.row) * row);
    }
    const auto bridge = size_t(random.below(5)) * row;
    int64_t stretches = 0;
    for (auto at = places.begin(); at != places.end(); ++at)
      stretches += at == places.begin() || *at - *std::prev(at) > row + bridge;
    const RowReader::Cost cost = reader.cost(wanted, bridge);
    REQUIRE(cost.requests == stretches);
    const auto rows = reader.read(wanted, bridge);
    REQUIRE(reader.moved() == cost.moved);
    REQUIRE(cost.moved <= cost.memory);
    REQUIRE(rows.size() == wanted.size());
    for (size_t i = 0; i < rows.size(); i++) {
      const std::vector<float>& from = wanted[i].tensor == &w ? values : others;
      REQUIRE(std::memcmp(rows[i], &from[size_t(wanted[i].row * k)], row) == 0);
    }
  }
}

}  // namespace
}  // namespace hydrant::test
