// Attention on the CPU: over cache rows, over a prompt's own keys, and the column sums of the
// latter.
//
// Scores, softmax and log-sum-exp are f32 whatever the cache's dtype. With f32 or f16 the products
// are f32 too; with bf16 the queries (scaled) and the probabilities are rounded to bf16. Every
// output is one fixed chain of operations over slots in ascending order, cut at multiples of
// kAttendBlock slots: its bits depend neither on the batch, nor on how a prompt is cut into chunks,
// nor on the number of threads. A NaN or an infinite product makes NaN of the query heads that see
// it, and of no other.
#pragma once
#include <cstddef>

#include "runtime/backends/cpu/isa.hpp"
#include "runtime/backends/cpu/thread_pool.hpp"
#include "runtime/device/buffer.hpp"
#include "runtime/device/ops.hpp"

namespace hydrant::cpu {

inline constexpr int32_t kAttendBlock = 256;

// Memory that calls work in. It grows to the largest call so far and is kept; one per stream.
class AttendScratch {
 public:
  size_t bytes() const { return buffer_.bytes(); }
  const Buffer& at_least(size_t bytes);  // 64-byte aligned, content undefined

 private:
  Buffer buffer_;
};

void attend_decode(ThreadPool& pool, Isa isa, const AttendDecodeArgs& args, AttendScratch& scratch);
void attend_prompt(ThreadPool& pool, Isa isa, const AttendPromptArgs& args, AttendScratch& scratch);
void summarize_prompt(ThreadPool& pool, Isa isa, const SummarizePromptArgs& args,
                      AttendScratch& scratch);

// What a decode step over at most `rows` rows asks of its scratch. `last_position` is the largest
// that a row of Positions::cache can reach, -1 without such rows.
size_t attend_decode_bytes(const HeadShape& shape, int32_t rows, int32_t slots,
                           int32_t last_position, int threads);
// What attend_prompt and summarize_prompt ask of theirs for `tokens` tokens in `segments` segments
// of prompts that are at most `length` long.
size_t attend_prompt_bytes(const HeadShape& shape, int32_t segments, int32_t tokens, int threads);
size_t summarize_prompt_bytes(const HeadShape& shape, int32_t segments, int32_t length,
                              int threads);

}  // namespace hydrant::cpu
