// Numbers for people: what ran, what it took.
#pragma once
#include <cstddef>
#include <span>
#include <string>

#include "runtime/apps/loaded_model.hpp"

namespace hydrant {

// The most memory the process has had resident (VmHWM), since its start or the last reset.
// Resetting is refused on some systems.
size_t peak_memory();
bool reset_peak_memory();

std::string bytes_text(size_t bytes);      // "138.2 MiB"
std::string count_text(int64_t count);     // "1,020"
std::string rate_text(double per_second);  // three digits or more

// KV bytes that the same rows would take with the full cache.
size_t full_kv_bytes(const Generator& generator, std::span<const Request> requests,
                     const BatchShape& shape);

// "llama, 135 M parameters; weights q8_0, 138.2 MiB; activations int8; cache bf16; cpu, avx512,
// ..."
std::string machine_line(const Model& model, const LoadedModel& loaded, const Device& device,
                         DType kv_dtype);
// "cache h2o: 204 slots, 20.0 % of 1,020 tokens, 39.8 % of the prompt's 512", of the longest row.
std::string cache_line(const RunConfig& config, std::span<const Request> requests);
// "512 prompt + 508 generated tokens; prefill 1,590 tok/s, ...; KV 4.5 of 22.5 MiB; peak memory
// ..." `rows` gave their first token in prefill.
std::string figures_line(const RunFigures& figures, int64_t rows, size_t full_kv,
                         const RunPlan& plan);

}  // namespace hydrant
