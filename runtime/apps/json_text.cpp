#include "runtime/apps/json_text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/base/json.hpp"

namespace hydrant {

nlohmann::ordered_json exact(float value) {
  ensure(std::isfinite(value), "a number that is not finite was to be written");
  char digits[32];
  const char* end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  double wide = 0;
  std::from_chars(digits, end, wide);
  return wide;
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); j++) row[j] = j;
  for (size_t i = 1; i <= a.size(); i++) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); j++) {
      const size_t changed = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
    }
  }
  return row[b.size()];
}

}  // namespace hydrant
