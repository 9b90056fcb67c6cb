// From rows of a checkpoint to panels.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "runtime/model/row_reader.hpp"
#include "runtime/model/upload.hpp"
#include "runtime/model/weight_plan.hpp"

namespace hydrant {

// Neighbouring panels of one matrix.
struct PanelRun {
  const MatrixPlan* matrix = nullptr;
  int64_t first = 0, count = 0;

  int64_t rows() const;  // fewer than 16 each at the matrix's end
  size_t bytes() const { return size_t(count) * matrix->weight.panel_bytes; }
};

// Cuts a run into runs of about a MiB in the file, where the order of the rows allows between
// stretches that are read at once.
std::vector<PanelRun> cut(const PanelRun& run);

struct PanelLoad {
  PanelRun run;
  std::byte* to = nullptr;
  Memory kind = Memory::pageable;  // of `to`
};

// One thread's; keeps its memory from one call to the next.
class PanelReader {
 public:
  PanelReader(const Checkpoint& checkpoint, const Ops& ops)
      : checkpoint_(checkpoint), ops_(ops), reader_(checkpoint) {}

  // What lies between two runs in the file is read along where that is less than what a request
  // costs beside its bytes.
  static constexpr size_t kBridge = size_t{32} << 10;

  // Reads, checks and packs into memory that the host can write; runs that are neighbours in the
  // file with one request. A value that is not finite is refused (bad_file) naming file, tensor and
  // row. Returns the bytes that the file gave.
  uint64_t read(std::span<const PanelLoad> loads);
  // The same for rows of the matrix as they are listed, 16 a panel.
  uint64_t read(const MatrixPlan& matrix, std::span<const int64_t> rows, std::byte* panels);

  RowReader::Cost cost(std::span<const PanelLoad> loads);
  void reserve(size_t bytes) { reader_.reserve(bytes); }
  void use(std::byte* memory, size_t bytes) { reader_.use(memory, bytes); }

 private:
  void list(std::span<const PanelLoad> loads);
  void pack(const MatrixPlan& matrix, std::span<const StoredRow> from,
            std::span<const std::byte* const> rows, std::byte* panels) const;

  const Checkpoint& checkpoint_;
  const Ops& ops_;
  RowReader reader_;
  std::vector<StoredRow> wanted_;
};

// Called in the calling thread, with bytes read so far and in all; the last time when all are.
using LoadProgress = std::function<void(uint64_t done, uint64_t total)>;

// Loads them on as many threads as the device has. Of several failures the first run's is thrown.
void load_panels(const Checkpoint& checkpoint, Device& device, std::span<const PanelLoad> loads,
                 const LoadProgress& progress);

// Writes a source's part of a vector, which begins at `whole` in the device's memory.
void load_vector(const Checkpoint& checkpoint, const VectorPlan& plan, Upload& upload,
                 std::byte* whole);

}  // namespace hydrant
