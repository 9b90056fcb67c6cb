#include "runtime/model/row_reader.hpp"

#include <catch2/catch.hpp>
#include <cstring>
#include <numeric>

#include "runtime/model/safetensors.hpp"
#include "test/support/checkpoint_writer.hpp"
#include "test/support/random.hpp"
#include "test/support/temporary_folder.hpp"

namespace hydrant::test {
namespace {

TEST_CASE("rows are read in any order, with repeats and holes") {
  const TemporaryFolder folder;
  const int64_t n = 2000, k = 3;  // 24 KB, of which a file has some blocks
  std::vector<float> values(size_t(n * k));
  std::iota(values.begin(), values.end(), 0.0f);
  folder.write("model.safetensors", safetensors_bytes({f32_tensor("w", {n, k}, values)}));
  const Checkpoint cached = open_safetensors(folder.path());
  const bool direct = GENERATE(false, true);  // where the test's folder has direct reads
  const Checkpoint checkpoint =
      direct ? cached.reopened(Caching::direct) : cached.reopened(Caching::cached);
  RowReader reader(checkpoint);
  Random random(1);
  for (int round = 0; round < 200; round++) {
    std::vector<int64_t> wanted(size_t(random.below(40)));
    const int64_t width = 1 + random.below(n);  // narrow: many repeats and neighbours
    for (int64_t& row : wanted) row = random.below(width);
    const RowReader::Cost cost = reader.cost(*checkpoint.find("w"), wanted);
    const auto rows = reader.read(*checkpoint.find("w"), wanted);
    REQUIRE(reader.moved() == cost.moved);
    REQUIRE(cost.moved <= cost.memory);
    REQUIRE(rows.size() == wanted.size());
    for (size_t i = 0; i < rows.size(); i++)
      REQUIRE(std::memcmp(rows[i], &values[size_t(wanted[i] * k)], size_t(k) * 4) == 0);
  }
}

}  // namespace
}  // namespace hydrant::test
