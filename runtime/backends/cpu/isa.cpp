#include "runtime/backends/cpu/isa.hpp"

#include <asm/prctl.h>
#include <cpuid.h>
#include <fmt/ranges.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

#include "runtime/base/error.hpp"

namespace hydrant::cpu {
namespace {

constexpr std::array<std::string_view, 5> kNames{"generic", "avx2", "avx512", "avx512-bf16", "amx"};

// __builtin_cpu_supports also asks whether the operating system saves the registers. clang 14 does
// not know "f16c" by name, and the feature needs no consent of its own: leaf 1, ECX bit 29.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c >> 29 & 1) != 0;
}
bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
}
bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vnni");
}
bool has_avx512_bf16() { return has_avx512() && __builtin_cpu_supports("avx512bf16"); }

// Neither compiler knows AMX by name. The kernel makes room for a thread's tiles only in a process
// that has asked for it; all threads of the process may use them then.
bool has_amx() {
  constexpr int kTileData = 18;  // the state component
  unsigned a = 0, b = 0, c = 0, d = 0;
  return has_avx512_bf16() && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 &&
         (d >> 24 & 1) != 0 /* tiles */ && (d >> 25 & 1) != 0 /* of int8 */ &&
         syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, kTileData) == 0;
}

std::vector<Isa> detect_automatic() {
  std::vector<Isa> isas{Isa::generic};
  if (has_avx2()) isas.push_back(Isa::avx2);
  if (has_avx512()) isas.push_back(Isa::avx512);
  if (has_avx512_bf16()) isas.push_back(Isa::avx512_bf16);
  return isas;
}
std::vector<Isa> detect() {
  std::vector<Isa> isas = detect_automatic();
  if (has_amx()) isas.push_back(Isa::amx);
  return isas;
}

}  // namespace

std::string_view name(Isa isa) { return kNames[size_t(isa)]; }

const std::vector<Isa>& usable_isas() {
  static const std::vector<Isa> isas = detect();
  return isas;
}

Isa choose_isa(std::string_view wanted) {
  if (wanted.empty()) return detect_automatic().back();
  const std::vector<Isa>& usable = usable_isas();
  std::vector<std::string_view> names;
  for (const Isa isa : usable) {
    if (name(isa) == wanted) return isa;
    names.push_back(name(isa));
  }
  fail(Fault::bad_config, "isa: this machine cannot use '{}', only {}", wanted,
       fmt::join(names, ", "));
}

}  // namespace hydrant::cpu
