// Which backend a test's executable is for: sources are built once for each.
#pragma once
#include <string_view>

namespace hydrant::test {

// "": all that the registry has.
constexpr std::string_view test_backend() {
#ifdef HYDRANT_TEST_DEVICE
  return HYDRANT_TEST_DEVICE;
#else
  return "";
#endif
}

// What whole runs go on.
constexpr std::string_view engine_device() {
  return test_backend().empty() ? "cpu" : test_backend();
}

}  // namespace hydrant::test
