#include "runtime/engine/step_memory.hpp"

namespace hydrant {

StepMemory::StepMemory(Device& device, const ModelSpec& spec, const JobLimits& limits,
                       DType kv_dtype) {
  Arena device_size, host_size;
  lay_out(device_size, host_size, device.ops(), spec, limits, kv_dtype);
  device_memory_ = device.allocate(Memory::device, device_size.used(), "activations");
  host_memory_ = device.allocate(Memory::pinned, host_size.used(), "inputs and logits of a step");
  Arena on_device(device_memory_), on_host(host_memory_);
  lay_out(on_device, on_host, device.ops(), spec, limits, kv_dtype);
}

size_t StepMemory::bytes(const Ops& ops, const ModelSpec& spec, const JobLimits& limits,
                         DType kv_dtype) {
  StepMemory measured;
  Arena device, host;
  measured.lay_out(device, host, ops, spec, limits, kv_dtype);
  return device.used() + host.used();
}

void StepMemory::lay_out(Arena& device, Arena& host, const Ops& ops, const ModelSpec& spec,
                         const JobLimits& limits, DType kv_dtype) {
  const BlockSpec& block = spec.block;
  const int64_t step = limits.step_tokens, piece = limits.piece_tokens;
  const int64_t rows = limits.rows_per_group;
  const bool projected = spec.embedding != spec.hidden;

  ids = host.take(DType::i32, {step});
  positions = host.take(DType::i32, {step});
  outputs = host.take(DType::i32, {limits.places()});
  logits = host.take(DType::f32, {rows, spec.vocab});
  best = host.take(DType::i32, {rows});
  lse = host.take(DType::f32, {rows});

  if (limits.ranks > 0) rank_places = host.take(DType::i32, {limits.ranks});

  last = device.take(DType::f32, {limits.places(), spec.hidden});
  if (projected) embedded = device.take(DType::f32, {piece, spec.embedding});
  normed = device.take(DType::f32, {piece, spec.hidden});
  if (block.order == BlockOrder::parallel)
    normed_ffn = device.take(DType::f32, {piece, spec.hidden});
  up = device.take(DType::f32, {piece, int64_t{block.ffn} * (block.gated ? 2 : 1)});
  if (block.gated) gated = device.take(DType::f32, {piece, block.ffn});

  last_normed = device.take(DType::f32, {rows, spec.hidden});
  if (projected) last_projected = device.take(DType::f32, {rows, spec.embedding});

  attention = {device, ops, spec, limits, kv_dtype};
}

}  // namespace hydrant
