// Numbers of bytes as people write them.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace hydrant {

// "64MiB", "1.5GB", "512": a number and B or a unit of 1024s (KiB, MiB, GiB, TiB) or of 1000s (KB,
// MB, GB, TB). None for another text or more than an exbibyte. Parts of a byte are dropped.
std::optional<uint64_t> parse_bytes(std::string_view text);

// "3GB/s" as well.
std::optional<uint64_t> parse_rate(std::string_view text);

inline constexpr uint64_t kMostBytes = uint64_t{1} << 60;

}  // namespace hydrant
