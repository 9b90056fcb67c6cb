#include "test/cuda/emu/settings.hpp"

#include <cstdlib>
#include <string_view>

namespace emu {
namespace {

std::string_view word(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}
int number(const char* name, int otherwise) {
  const char* value = std::getenv(name);
  return value ? std::atoi(value) : otherwise;
}

Settings read() {
  Settings s;
  const std::string_view order = word("EMU_ORDER");
  s.order = order == "reverse" ? Order::reverse : order == "random" ? Order::random : s.order;
  s.seed = uint32_t(number("EMU_SEED", 1));
  s.race = number("EMU_RACE", 0) != 0;
  s.deterministic = word("EMU_SCHED") == "det";
  s.jitter = number("EMU_JITTER", 0);
  s.devices = number("EMU_DEVICES", 1);
  s.driver = number("EMU_DRIVER", 13000);
  s.capability = number("EMU_SM", 80);
  s.break_at = number("EMU_BREAK_AT", 0);
  s.lose_at = number("EMU_LOSE_AT", 0);
  s.start = number("EMU_START", 0);
  s.only = number("EMU_ONLY", -1);
  s.blas = number("EMU_BLAS", 0);
  s.code = number("EMU_CODE", 1) != 0;
  s.device_bytes = uint64_t(number("EMU_MEM_MB", 2048)) << 20;
  s.pinned_bytes = uint64_t(number("EMU_PIN_KB", 1 << 30)) << 10;
  return s;
}

}  // namespace

const Settings& settings() {
  static const Settings all = read();
  return all;
}

}  // namespace emu
