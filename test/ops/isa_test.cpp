#include "runtime/backends/cpu/isa.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "runtime/base/error.hpp"

using namespace hydrant;
using namespace hydrant::cpu;

TEST_CASE(
    "generic is always usable, the best automatic path is the default, all have their names") {
  const auto& usable = usable_isas();
  REQUIRE(!usable.empty());
  CHECK(usable.front() == Isa::generic);
  CHECK(std::is_sorted(usable.begin(), usable.end()));
  CHECK(choose_isa("") == *std::find_if(usable.rbegin(), usable.rend(), is_automatic));
  for (const Isa isa : usable) CHECK(choose_isa(name(isa)) == isa);
}

TEST_CASE("amx is not chosen unless it is named") {
  CHECK(choose_isa("") != Isa::amx);
  CHECK(!is_automatic(Isa::amx));
}

TEST_CASE("a path that is unknown or that this machine lacks is refused, naming what it has") {
  std::vector<std::string> refused{"avx9"};
  for (const Isa isa : {Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx})
    if (std::count(usable_isas().begin(), usable_isas().end(), isa) == 0)
      refused.emplace_back(name(isa));
  for (const std::string& path : refused) try {
      choose_isa(path);
      FAIL("accepted");
    } catch (const Error& error) {
      CHECK(error.fault() == Fault::bad_config);
      CHECK_THAT(error.what(), Catch::Contains("'" + path + "'"));
      for (const Isa isa : usable_isas())
        CHECK_THAT(error.what(), Catch::Contains(std::string(name(isa))));
    }
}
