// The pieces of attention that are compiled once for each instruction path, and the plain structs
// they work on. Everything here belongs to one KV head.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "runtime/backends/cpu/isa.hpp"
#include "runtime/backends/cpu/kernels/attend.hpp"
#include "runtime/backends/cpu/kernels/kv_layout.hpp"

namespace hydrant::cpu {

// Scratch of one thread. A pair of bf16 takes at most as much as two floats.
struct TileScratch {
  void* left;     // queries as the products want them: [rows][d] floats, and 16 spare
  float* logits;  // [kRegisterRows][kAttendBlock]
  void* weights;  // the same, as the products want them
  float* out;     // [rows][d rounded up to 16]: sums of weighted values
  float* most;    // [rows] the largest logit so far
  float* total;   // [rows][16] sums of weights, lane by lane
  float* panel;   // [d][16] rotated keys of one run
};
inline constexpr int32_t kRegisterRows = 8;  // no path has a taller register tile

constexpr int32_t padded(int32_t head_dim) { return (head_dim + 15) / 16 * 16; }

// How keys of Positions::cache turn when read: key i of a part by row ranks[i] of the table.
struct RankRotation {
  const int32_t* ranks = nullptr;  // null: keys are used as they are
  const float* table = nullptr;    // [places][dims / 2][cos, sin]
  int32_t dims = 0, query_rank = 0;
};

// One query per head of the group over up to kAttendBlock slots of a cache row.
struct DecodePart {
  KvLayout layout;
  const std::byte* runs = nullptr;  // first run of the part
  int32_t slots = 0, group = 0;
  const float* q = nullptr;  // [group][d]
  float scale = 1;
  RankRotation rotation;
  float* logits = nullptr;  // [group] rows `logits_stride` apart; null: nobody wants them
  size_t logits_stride = 0;
  float* sums = nullptr;  // [group][sums_stride(d)]: weighted values, largest logit, total weight
};
constexpr size_t sums_stride(int32_t head_dim) { return size_t(padded(head_dim)) + 16; }

// The parts of one (row, KV head) put together in slot order.
struct DecodeMerge {
  int32_t head_dim = 0, group = 0, parts = 0;
  float* sums = nullptr;  // [parts][group][sums_stride(d)]
  float* out = nullptr;   // [group][d]
  float* lse = nullptr;   // [group], or null
};

// `queries` queries of a prompt, the first at position `first`, over slots [0, own position].
struct PromptTile {
  KvLayout layout;
  const std::byte* runs = nullptr;
  int32_t first = 0, queries = 0, group = 0;
  const float* q = nullptr;  // [queries][group][d], queries `query_stride` floats apart
  size_t query_stride = 0;
  float scale = 1;
  float* out = nullptr;  // as q
  float* lse = nullptr;  // [queries][group], queries `lse_stride` apart
  size_t lse_stride = 0;
};

// Up to kAttendBlock keys from key `begin` on, which is a multiple of kRunSlots; the chunk's
// queries.
struct ColumnBlock {
  KvLayout layout;
  const std::byte* runs = nullptr;  // of key `begin`
  int32_t begin = 0, keys = 0;
  int32_t first = 0, queries = 0, group = 0;
  const float* q = nullptr;
  size_t query_stride = 0;
  const float* lse = nullptr;
  size_t lse_stride = 0;
  float scale = 1;
  float* sum = nullptr;   // [keys]
  float* last = nullptr;  // [keys], or null when the chunk does not hold the last query
};

struct AttendKernels {
  void (*decode_part)(const DecodePart&, const TileScratch&);
  void (*decode_merge)(const DecodeMerge&);
  void (*prompt_tile)(const PromptTile&, const TileScratch&);
  void (*column_block)(const ColumnBlock&, const TileScratch&);
};

namespace generic {
extern const AttendKernels attend_kernels;
}
namespace avx2 {
extern const AttendKernels attend_kernels;
}
namespace avx512 {
extern const AttendKernels attend_kernels;
}
namespace avx512_bf16 {
extern const AttendKernels attend_kernels;
}

}  // namespace hydrant::cpu
