#include "runtime/backends/cpu/isa.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "runtime/base/error.hpp"

using namespace hydrant;
using namespace hydrant::cpu;

TEST_CASE("generic is always usable, the best is the default, every usable path has its name") {
  const auto& usable = usable_isas();
  REQUIRE(!usable.empty());
  CHECK(usable.front() == Isa::generic);
  CHECK(std::is_sorted(usable.begin(), usable.end()));
  CHECK(choose_isa("") == usable.back());
  for (const Isa isa : usable) CHECK(choose_isa(name(isa)) == isa);
}

TEST_CASE("an unknown path is refused, naming the usable and the known ones") {
  try {
    choose_isa("avx9");
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.fault() == Fault::bad_config);
    const std::string what = error.what();
    CHECK(what.find("'avx9'") != std::string::npos);
    CHECK(what.find("generic") != std::string::npos);
    CHECK(what.find("avx512-bf16") != std::string::npos);
  }
}
