#include "offload/shares.hpp"

#include <cmath>

#include "runtime/base/error.hpp"

namespace hydrant {

void check_shares(const Shares& shares, std::string_view key) {
  const auto need = [&](double share, std::string_view home) {
    if (!(share >= 0 && share <= 100))
      fail(Fault::bad_config, "{}.{}: {} percent, must be 0 to 100", key, home, share);
  };
  need(shares.device, "device");
  need(shares.host, "host");
  need(shares.disk, "disk");
  const double sum = shares.device + shares.host + shares.disk;
  if (std::abs(sum - 100) > 1e-6)
    fail(Fault::bad_config, "{}: device {} + host {} + disk {} is {} percent, must be 100", key,
         shares.device, shares.host, shares.disk, sum);
}

}  // namespace hydrant
