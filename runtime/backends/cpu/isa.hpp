// The instruction paths of the CPU backend and which of them this machine has.
#pragma once
#include <string_view>
#include <vector>

namespace hydrant::cpu {

// In ascending order. avx512: F/BW/VL/DQ + VNNI without BF16; avx512_bf16: with it. A path may be
// used when the processor and the operating system both allow it.
enum class Isa { generic, avx2, avx512, avx512_bf16 };

std::string_view name(Isa isa);         // "generic", "avx2", "avx512", "avx512-bf16"
const std::vector<Isa>& usable_isas();  // ascending; generic is always there
// "" is the best usable one. Throws bad_config naming the known and the usable ones.
Isa choose_isa(std::string_view name);

}  // namespace hydrant::cpu
