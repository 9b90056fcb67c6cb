#include "runtime/model/load_weights.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>

#include "runtime/base/aligned.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/half.hpp"
#include "runtime/model/finite.hpp"
#include "runtime/model/row_reader.hpp"

namespace hydrant {
namespace {

constexpr int64_t kChunkBytes = int64_t{1} << 20;  // of a file, per read and thread

// Neighbouring panels of one matrix: what a thread reads and packs at a time.
struct Chunk {
  const MatrixPlan* matrix;
  int64_t first_row, rows;
  uint64_t bytes;  // in the file
};

std::vector<Chunk> cut(const WeightPlan& plan) {
  std::vector<Chunk> chunks;
  for (const MatrixPlan& m : plan.matrices) {
    const int64_t row = row_bytes(m.weight.format, m.weight.k);
    const int64_t step = std::max(int64_t{1}, kChunkBytes / (row * kPanelRows)) * kPanelRows;
    for (int64_t first = 0; first < m.weight.n; first += step) {
      const int64_t rows = std::min(step, m.weight.n - first);
      chunks.push_back({&m, first, rows, uint64_t(rows * row)});
    }
  }
  return chunks;
}

// Work shared by some threads; each takes the next chunk until there is none or one has failed.
class Packing {
 public:
  Packing(const Checkpoint& checkpoint, const WeightPlan& plan, const Ops& ops, std::byte* base)
      : checkpoint_(checkpoint), ops_(ops), base_(base), chunks_(cut(plan)) {
    for (const Chunk& c : chunks_) total_ += c.bytes;
  }

  void run(int threads, const LoadProgress& progress) {
    threads = std::min(threads, int(std::min<size_t>(chunks_.size(), 1024)));
    {
      std::vector<std::jthread> helpers;
      for (int i = 1; i < threads; i++) helpers.emplace_back([this] { work({}); });
      work(progress);
    }
    if (failure_) std::rethrow_exception(failure_);
    if (progress) progress(total_, total_);  // the last chunks may have been others'
  }

 private:
  void work(const LoadProgress& progress) noexcept {
    size_t mine = 0;
    try {
      RowReader reader(checkpoint_);
      while (!failed_ && (mine = next_.fetch_add(1)) < chunks_.size()) {
        pack(chunks_[mine], reader);
        const uint64_t done = done_.fetch_add(chunks_[mine].bytes) + chunks_[mine].bytes;
        if (progress) progress(done, total_);
      }
    } catch (...) {
      keep_failure(mine);
    }
  }

  // The first chunk's failure is the one that is told, whatever the threads' order.
  void keep_failure(size_t chunk) {
    const std::lock_guard lock(mutex_);
    if (failure_ && failed_chunk_ < chunk) return;
    failure_ = std::current_exception();
    failed_chunk_ = chunk;
    failed_ = true;
  }

  void pack(const Chunk& chunk, RowReader& reader) const {
    const MatrixPlan& m = *chunk.matrix;
    std::vector<int64_t> wanted(size_t(chunk.rows));
    for (int64_t i = 0; i < chunk.rows; i++)
      wanted[size_t(i)] = m.source.order(chunk.first_row + i);
    const std::span<const std::byte* const> rows = reader.read(*m.tensor, wanted);

    const auto row = size_t(row_bytes(m.weight.format, m.weight.k));
    for (size_t i = 0; i < rows.size(); i++)
      if (!all_finite(m.weight.format, {rows[i], row}))
        fail(Fault::bad_file, "{}: tensor {} holds a value that is not finite in row {}",
             checkpoint_.path_of(*m.tensor), m.tensor->name, wanted[i]);
    for (size_t i = 0; i < rows.size(); i += size_t(kPanelRows)) {
      const auto panel = size_t(chunk.first_row / kPanelRows) + i / size_t(kPanelRows);
      ops_.pack_panel(m.weight.format, m.weight.k,
                      rows.subspan(i, std::min(size_t(kPanelRows), rows.size() - i)),
                      base_ + m.offset + panel * m.weight.panel_bytes);
    }
  }

  const Checkpoint& checkpoint_;
  const Ops& ops_;
  std::byte* base_;
  std::vector<Chunk> chunks_;
  uint64_t total_ = 0;
  std::atomic<size_t> next_ = 0;
  std::atomic<uint64_t> done_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;  // of the two below
  std::exception_ptr failure_;
  size_t failed_chunk_ = 0;
};

float element(DType dtype, const std::byte* from, int64_t index) {
  if (dtype == DType::f32) {
    float value;
    std::memcpy(&value, from + index * 4, sizeof value);
    return value;
  }
  uint16_t half;
  std::memcpy(&half, from + index * 2, sizeof half);
  return dtype == DType::f16 ? f16_to_f32(half) : bf16_to_f32(half);
}

void fill_vector(const Checkpoint& checkpoint, const VectorPlan& plan, float* to) {
  const VectorSource& source = plan.source;
  to += source.begin;
  if (!plan.tensor) {
    std::fill(to, to + source.size, 1.0f);
    return;
  }
  const StoredTensor& t = *plan.tensor;
  std::vector<std::byte> stored(size_t(row_bytes(*t.dtype, t.columns)));
  checkpoint.read_rows(t, 0, 1, stored.data());
  if (!all_finite(*t.dtype, stored))
    fail(Fault::bad_file, "{}: tensor {} holds a value that is not finite", checkpoint.path_of(t),
         t.name);
  for (int64_t i = 0; i < source.size; i++) {
    const int64_t from = source.order(i);
    ensure(from >= 0 && from < t.columns, "element {} of {}", from, t.name);
    to[i] = element(*t.dtype, stored.data(), from);
  }
}

std::vector<LayerWeights> view(const ModelSpec& spec, const WeightPlan& plan,
                               const std::byte* base) {
  std::vector<LayerWeights> stages(size_t(spec.stages()));
  for (const MatrixPlan& m : plan.matrices) {
    Weight& w = stages[size_t(m.source.stage)].matrices[size_t(m.source.role)];
    w = m.weight;
    w.panels = base + m.offset;
  }
  for (const VectorPlan& v : plan.vectors)
    stages[size_t(v.source.stage)].vectors[size_t(v.source.role)] =
        ConstTensor(base + v.offset, DType::f32, {v.source.vector_size});
  if (spec.tied_head) stages.back().matrices[size_t(Matrix::head)] = stages.front()[Matrix::tokens];
  return stages;
}

}  // namespace

ModelWeights load_weights(const Checkpoint& checkpoint, const ModelSpec& spec,
                          const WeightPlan& plan, Device& device, const LoadProgress& progress) {
  Buffer memory = device.allocate(Memory::device, plan.bytes, "the model's weights");
  auto* base = static_cast<std::byte*>(memory.data());
  for (const VectorPlan& v : plan.vectors)
    fill_vector(checkpoint, v, reinterpret_cast<float*>(base + v.offset));
  Packing(checkpoint, plan, device.ops(), base).run(device.threads(), progress);
  return ModelWeights(std::move(memory), view(spec, plan, base));
}

}  // namespace hydrant
