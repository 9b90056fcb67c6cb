#include "runtime/apps/prediction.hpp"

#include <optional>

#include "offload/offloaded_caches.hpp"

namespace hydrant {

Workload workload_of(std::span<const Request> rows) {
  const Request& row = rows.front();
  return {int64_t(rows.size()), int32_t(row.prompt.size()), row.max_new_tokens, row.plans};
}

Prediction predict_run(const MachineRates& rates, const Model& model, Device& device,
                       const RunPlan& plan, const BatchShape& shape, DType kv_dtype,
                       const Workload& work) {
  const WeightLayout weights(plan.weights, model.spec, plan.offload.shares);
  std::optional<CacheLayout> caches;
  if (plan.caches_move()) {
    const BlockSpec& block = model.spec.block;
    KvShape kv{shape.groups, shape.rows_per_group, block.kv_heads, block.head_dim, {}, kv_dtype};
    kv.heads = block.heads;
    for (const policy::RowPlan& row : work.plans) kv.capacity.push_back(row.slots.capacity());
    const std::unique_ptr<Device> host = open_host(device, plan.caches);
    const OffloadedCaches homes(device, plan.caches, nullptr, host.get());
    kv.resident = homes.resident(kv);
    caches = homes.layout(kv, device.ops());
  }
  CostSetup setup;
  setup.spec = &model.spec;
  setup.weights = &weights;
  setup.weight_options = plan.offload;
  setup.caches = caches ? &*caches : nullptr;
  setup.cache_options = plan.caches;
  setup.hidden = plan.hidden;
  setup.kv_dtype = kv_dtype;
  setup.rows_per_group = shape.rows_per_group;
  setup.groups = shape.groups;
  setup.prefill_chunk = shape.prefill_chunk;
  setup.prefill_tokens = shape.prefill_tokens;
  setup.threads = device.threads();
  setup.host_is_device = device.is_host();
  return CostModel(rates, setup).run(work);
}

}  // namespace hydrant
