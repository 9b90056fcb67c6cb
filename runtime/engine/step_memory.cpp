#include "runtime/engine/step_memory.hpp"

namespace hydrant {

StepMemory::StepMemory(Device& device, const ModelSpec& spec, const JobLimits& limits,
                       DType kv_dtype) {
  Arena device_size, host_size;
  lay_out(device_size, host_size, device, spec, limits, kv_dtype);
  device_memory_ = device.allocate(Memory::device, device_size.used(), "activations");
  host_memory_ = device.allocate(Memory::pinned, host_size.used(), "inputs and logits of a step");
  Arena on_device(device_memory_), on_host(host_memory_);
  lay_out(on_device, on_host, device, spec, limits, kv_dtype);
}

size_t StepMemory::bytes(Device& device, const ModelSpec& spec, const JobLimits& limits,
                         DType kv_dtype) {
  StepMemory measured;
  Arena on_device, on_host;
  measured.lay_out(on_device, on_host, device, spec, limits, kv_dtype);
  return on_device.used() + on_host.used();
}

void StepMemory::lay_out(Arena& on_device, Arena& on_host, Device& device, const ModelSpec& spec,
                         const JobLimits& limits, DType kv_dtype) {
  const BlockSpec& block = spec.block;
  const int64_t step = limits.step_tokens, piece = limits.piece_tokens;
  const int64_t rows = limits.rows_per_group;
  const bool projected = spec.embedding != spec.hidden;

  ids = on_host.take(DType::i32, {step});
  positions = on_host.take(DType::i32, {step});
  outputs = on_host.take(DType::i32, {limits.places()});
  logits = on_host.take(DType::f32, {rows, spec.vocab});
  best = on_host.take(DType::i32, {rows});
  lse = on_host.take(DType::f32, {rows});

  if (limits.ranks > 0) rank_places = on_host.take(DType::i32, {limits.ranks});

  last = on_device.take(DType::f32, {limits.places(), spec.hidden});
  if (projected) embedded = on_device.take(DType::f32, {piece, spec.embedding});
  normed = on_device.take(DType::f32, {piece, spec.hidden});
  if (block.order == BlockOrder::parallel)
    normed_ffn = on_device.take(DType::f32, {piece, spec.hidden});
  up = on_device.take(DType::f32, {piece, int64_t{block.ffn} * (block.gated ? 2 : 1)});
  if (block.gated) gated = on_device.take(DType::f32, {piece, block.ffn});

  last_normed = on_device.take(DType::f32, {rows, spec.hidden});
  if (projected) last_projected = on_device.take(DType::f32, {rows, spec.embedding});

  made_logits = device.is_host() ? logits : on_device.take(DType::f32, logits.shape);

  attention = {on_device, device.ops(), spec, limits, kv_dtype};
}

}  // namespace hydrant
