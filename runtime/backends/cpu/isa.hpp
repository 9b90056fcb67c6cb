// The instruction paths of the CPU backend and which of them this machine has.
#pragma once
#include <string_view>
#include <vector>

namespace hydrant::cpu {

// In ascending order. avx512: F/BW/VL/DQ + VNNI without BF16; avx512_bf16: with it; amx: that and
// int8 products of many rows in tiles. A path may be used when the processor and the operating
// system both allow it.
enum class Isa { generic, avx2, avx512, avx512_bf16, amx };

std::string_view name(Isa isa);  // "generic", "avx2", "avx512", "avx512-bf16", "amx"
// Off until its bits have been tested on a machine that has it: amx is used where it is asked for.
constexpr bool is_automatic(Isa isa) { return isa != Isa::amx; }
// Ascending; generic is always there. The first call asks the operating system for the use of
// tiles, which lasts as long as the process.
const std::vector<Isa>& usable_isas();
// "" is the best automatic one. Throws bad_config naming the known and the usable ones.
Isa choose_isa(std::string_view name);

}  // namespace hydrant::cpu
