#include "runtime/model/panel_reader.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>

#include "runtime/base/error.hpp"
#include "runtime/model/finite.hpp"

namespace hydrant {
namespace {

constexpr int64_t kRunBytes = int64_t{1} << 20;  // of a file, per read and thread
constexpr int64_t kLongestRun = 4 * kRunBytes;   // where less would cut what is read at once

// Rows of a run. A permuted head that is cut in two is read twice, so runs end between heads.
int64_t rows_at_once(const MatrixPlan& m) {
  const int64_t row = row_bytes(m.weight.format, m.weight.k);
  const int64_t plain = std::max(int64_t{1}, kRunBytes / (row * kPanelRows)) * kPanelRows;
  const int64_t stretch =
      std::lcm(kPanelRows, std::max(int64_t{1}, m.source.order.middle * m.source.order.inner));
  if (stretch * row > kLongestRun) return plain;
  return std::max(int64_t{1}, plain / stretch) * stretch;
}

// Work shared by some threads; each takes the next run until there is none or one has failed.
class Packing {
 public:
  Packing(const Checkpoint& checkpoint, Device& device, std::span<const PanelLoad> loads)
      : checkpoint_(checkpoint), device_(device) {
    for (const PanelLoad& load : loads)
      for (const PanelRun& run : cut(load.run)) {
        const size_t skip = size_t(run.first - load.run.first) * run.matrix->weight.panel_bytes;
        loads_.push_back({run, load.to + skip, load.kind});
        total_ += bytes_of(run);
      }
  }

  void run(const LoadProgress& progress) {
    const int threads = std::min(device_.threads(), int(std::min<size_t>(loads_.size(), 1024)));
    {
      std::vector<std::jthread> helpers;
      try {
        for (int i = 1; i < threads; i++) helpers.emplace_back([this] { work({}); });
      } catch (...) {
        failed_ = true;  // those that have begun do not load a model in vain
        throw;
      }
      work(progress);
    }
    if (failure_) std::rethrow_exception(failure_);
    if (progress) progress(total_, total_);  // the last runs may have been others'
  }

 private:
  static uint64_t bytes_of(const PanelRun& run) {
    return uint64_t(run.rows() * row_bytes(run.matrix->weight.format, run.matrix->weight.k));
  }

  void work(const LoadProgress& progress) noexcept {
    size_t mine = 0;
    try {
      PanelReader reader(checkpoint_, device_.ops());
      Upload upload(device_);
      while (!failed_ && (mine = next_.fetch_add(1)) < loads_.size()) {
        PanelLoad load = loads_[mine];
        load.to = upload.room(load.to, load.run.bytes(), load.kind);
        reader.read({&load, 1});
        upload.finish();
        const uint64_t bytes = bytes_of(load.run), done = done_.fetch_add(bytes) + bytes;
        if (progress) progress(done, total_);
      }
    } catch (...) {
      keep_failure(mine);
    }
  }

  // The first run's failure is the one that is told, whatever the threads' order.
  void keep_failure(size_t load) {
    const std::lock_guard lock(mutex_);
    if (failure_ && failed_load_ < load) return;
    failure_ = std::current_exception();
    failed_load_ = load;
    failed_ = true;
  }

  const Checkpoint& checkpoint_;
  Device& device_;
  std::vector<PanelLoad> loads_;
  uint64_t total_ = 0;
  std::atomic<size_t> next_ = 0;
  std::atomic<uint64_t> done_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;  // of the two below
  std::exception_ptr failure_;
  size_t failed_load_ = 0;
};

}  // namespace

int64_t PanelRun::rows() const {
  const int64_t end = std::min((first + count) * kPanelRows, matrix->weight.n);
  return end - std::min(first * kPanelRows, end);
}

std::vector<PanelRun> cut(const PanelRun& run) {
  std::vector<PanelRun> runs;
  const int64_t step = rows_at_once(*run.matrix) / kPanelRows, end = run.first + run.count;
  for (int64_t first = run.first; first < end;) {
    const int64_t next = std::min(end, (first / step + 1) * step);
    runs.push_back({run.matrix, first, next - first});
    first = next;
  }
  return runs;
}

void PanelReader::pack(const MatrixPlan& m, std::span<const StoredRow> from,
                       std::span<const std::byte* const> rows, std::byte* panels) const {
  const auto row = size_t(row_bytes(m.weight.format, m.weight.k));
  // A panel at a time, so that what was looked at is still near when it is packed.
  for (size_t first = 0; first < rows.size(); first += size_t(kPanelRows)) {
    const auto some = rows.subspan(first, std::min(size_t(kPanelRows), rows.size() - first));
    for (size_t i = 0; i < some.size(); i++)
      if (!all_finite(m.weight.format, {some[i], row}))
        fail(Fault::bad_file, "{}: tensor {} holds a value that is not finite in row {}",
             checkpoint_.path_of(*m.tensor), m.tensor->name, from[first + i].row);
    ops_.pack_panel(m.weight.format, m.weight.k, some,
                    panels + first / size_t(kPanelRows) * m.weight.panel_bytes);
  }
}

uint64_t PanelReader::read(const MatrixPlan& m, std::span<const int64_t> listed,
                           std::byte* panels) {
  wanted_.clear();
  for (const int64_t row : listed) wanted_.push_back({m.tensor, m.source.order(row)});
  const auto one_row = size_t(row_bytes(*m.tensor->dtype, m.tensor->columns));
  pack(m, wanted_, reader_.read(wanted_, one_row), panels);
  return reader_.moved();
}

uint64_t PanelReader::read(std::span<const PanelLoad> loads) {
  list(loads);
  const std::span<const std::byte* const> rows = reader_.read(wanted_, kBridge);
  size_t at = 0;
  for (const PanelLoad& load : loads) {
    const auto count = size_t(load.run.rows());
    pack(*load.run.matrix, std::span(wanted_).subspan(at, count), rows.subspan(at, count), load.to);
    at += count;
  }
  return reader_.moved();
}

RowReader::Cost PanelReader::cost(std::span<const PanelLoad> loads) {
  list(loads);
  return reader_.cost(wanted_, kBridge);
}

void PanelReader::list(std::span<const PanelLoad> loads) {
  wanted_.clear();
  for (const PanelLoad& load : loads) {
    const MatrixPlan& m = *load.run.matrix;
    const int64_t first = load.run.first * kPanelRows;
    for (int64_t i = 0; i < load.run.rows(); i++)
      wanted_.push_back({m.tensor, m.source.order(first + i)});
  }
}

void load_panels(const Checkpoint& checkpoint, Device& device, std::span<const PanelLoad> loads,
                 const LoadProgress& progress) {
  Packing(checkpoint, device, loads).run(progress);
}

}  // namespace hydrant
