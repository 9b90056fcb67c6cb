#include <fcntl.h>
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>

#include "offload/disk_file.hpp"
#include "runtime/apps/measure.hpp"
#include "runtime/base/aligned.hpp"
#include "runtime/base/error.hpp"
#include "runtime/model/model_files.hpp"
#include "runtime/model/panel_reader.hpp"

namespace hydrant {
namespace {

constexpr std::array<int, 3> kUnderWay{1, 2, 4};     // copies
constexpr std::array<int, 4> kRequests{1, 2, 4, 8};  // of a disk
constexpr size_t kCopy = size_t{4} << 20, kCopied = size_t{128} << 20;
constexpr size_t kFileBytes = size_t{192} << 20;
constexpr uint64_t kLeastFile = uint64_t{32} << 20;

using Clock = std::chrono::steady_clock;
double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double thread_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

// Whose name is gone as soon as it is open: nothing is left behind, whatever happens.
class ReadFile {
 public:
  explicit ReadFile(const std::string& folder) {
    std::string path = folder + "/hydrant-profile-XXXXXX";
    const int descriptor = ::mkostemp(path.data(), O_CLOEXEC);
    if (descriptor < 0)
      fail(Fault::io, "{}: no file can be made there: {}", folder, std::strerror(errno));
    try {
      const std::vector<std::byte> some(kLargeRequest, std::byte{0x2c});
      for (size_t at = 0; at < kFileBytes;) {  // a write may do a part, the next one says why
        const ssize_t done =
            ::write(descriptor, some.data(), std::min(some.size(), kFileBytes - at));
        if (done <= 0)
          fail(Fault::io, "{}: {} bytes to measure the disk with cannot be written: {}", folder,
               kFileBytes, std::strerror(errno));
        at += size_t(done);
      }
      if (::fsync(descriptor) != 0) fail(Fault::io, "{}: {}", folder, std::strerror(errno));
      File cached(path);
      direct_.emplace(cached.reopened(Caching::direct));
    } catch (...) {
      ::unlink(path.c_str());
      ::close(descriptor);
      throw;
    }
    ::unlink(path.c_str());
    ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
    ::close(descriptor);
  }
  File take() { return std::move(*direct_); }

 private:
  std::optional<File> direct_;
};

// Requests of one size, all over the file, and what each moves into or out of: memory of its own,
// more than caches hold, as what a run reads is looked at and what it writes was made.
struct Requests {
  size_t bytes, count;
  static constexpr size_t kMemory = size_t{64} << 20;

  uint64_t offset(size_t i, size_t of = kFileBytes) const {
    return i * (of / count) / File::kBlock * File::kBlock;
  }
  std::byte* memory(std::byte* all, size_t i) const { return all + i * bytes % kMemory; }
};
constexpr Requests kLarge{kLargeRequest, kFileBytes / kLargeRequest}, kSmall{kSmallRequest, 1500};

double read_seconds(const File& file, std::byte* memory, Requests list, int under_way) {
  std::atomic<size_t> next = 0;
  const size_t size = file.size();  // parts of a large one may differ in speed
  list.count = std::min(list.count, size / list.bytes);
  const auto begin = Clock::now();
  {
    std::vector<std::jthread> readers;
    for (int i = 0; i < under_way; i++)
      readers.emplace_back([&] {
        for (size_t r = next++; r < list.count; r = next++)
          file.read_extent(list.offset(r, size), list.bytes, list.memory(memory, r),
                           "a file to measure with");
      });
  }
  return since(begin) / double(list.count);
}

double write_seconds(const std::string& folder, std::byte* memory, const Requests& list,
                     int under_way) {
  const auto file = open_disk_file(SpillFile(folder, kFileBytes, Caching::direct),
                                   DiskEngine::io_uring, under_way);
  std::vector<DiskRequest> requests;
  for (size_t i = 0; i < list.count; i++)
    requests.push_back({.write = true,
                        .offset = list.offset(i),
                        .data = list.memory(memory, i),
                        .bytes = list.bytes});
  const auto begin = Clock::now();
  file->run(requests);
  const double seconds = since(begin) / double(list.count);
  for (const DiskRequest& r : requests)
    if (!r.done()) fail(Fault::io, "{}: {}", folder, std::strerror(r.error));
  return seconds;
}

// seconds(requests, under way): of one of them.
template <class Seconds>
DiskRates disk_rates(const Seconds& seconds) {
  std::array<std::vector<double>, kRequests.size()> large, small;
  for (int round = 0; round < kRounds; round++)
    for (size_t i = 0; i < kRequests.size(); i++) {
      large[i].push_back(seconds(kLarge, kRequests[i]));
      small[i].push_back(seconds(kSmall, kRequests[i]));
    }
  DiskRates rates{{{}, Curve::Beyond::level}, {{}, Curve::Beyond::level}};
  for (size_t i = 0; i < kRequests.size(); i++) {
    const double many = median(large[i]), few = median(small[i]),
                 byte = std::max(many - few, 0.0) / double(kLargeRequest - kSmallRequest);
    rates.byte.points.emplace_back(kRequests[i], byte);
    rates.request.points.emplace_back(kRequests[i],
                                      std::max(few - byte * double(kSmallRequest), 0.0));
  }
  return rates;
}

constexpr std::array<DType, 8> kFormats{DType::f32,  DType::f16,  DType::bf16, DType::q8_0,
                                        DType::q4_0, DType::q4_1, DType::q4_k, DType::q6_k};

// The same bytes as a tensor of each format.
Checkpoint as_tensors(File file) {
  constexpr int64_t kInputs = 1024;
  std::vector<StoredTensor> tensors;
  for (const DType format : kFormats) {
    const int64_t row = row_bytes(format, kInputs);
    StoredTensor& t = tensors.emplace_back();
    t.name = name(format);
    t.dtype = format;
    t.rows = int64_t{16} * int64_t(kLargeRequest) / row / kPanelRows * kPanelRows;
    t.columns = kInputs;
    t.shape = {t.rows, t.columns};
    t.bytes = uint64_t(t.rows * row);
  }
  std::vector<File> files;
  files.push_back(std::move(file));
  return {std::move(files), std::move(tensors)};
}

PackRate packing(const Checkpoint& checkpoint, const StoredTensor& tensor, const Ops& ops,
                 std::byte* memory) {
  MatrixPlan matrix;
  matrix.tensor = &tensor;
  matrix.source.n = matrix.source.tensor_rows = tensor.rows;
  matrix.source.k = tensor.columns;
  matrix.weight = {nullptr,     *tensor.dtype,  Activations::f32,
                   tensor.rows, tensor.columns, ops.panel_bytes(*tensor.dtype, tensor.columns)};
  PanelReader reader(checkpoint, ops);
  const int64_t panels = tensor.rows / kPanelRows;
  std::vector<std::byte> packed(size_t(panels) * matrix.weight.panel_bytes);
  std::vector<double> seconds;
  // As lanes have it: each read arrives where none has for long.
  constexpr size_t kTurn = 4 * kLargeRequest;
  size_t turn = 0;
  for (int pass = 0; pass < 3; pass++) {
    const double begin = thread_seconds();
    for (const PanelRun& run : cut({&matrix, 0, panels})) {
      reader.use(memory + turn++ * kTurn % Requests::kMemory, kTurn);
      reader.read(std::array{
          PanelLoad{run, packed.data() + size_t(run.first) * matrix.weight.panel_bytes}});
    }
    seconds.push_back((thread_seconds() - begin) / double(tensor.bytes));
  }
  return {*tensor.dtype, median(std::move(seconds))};
}

}  // namespace

void measure_copies(Device& device, MachineRates& rates, const Measuring& measuring) {
  measuring("copies to the device");
  const Buffer from = device.allocate(Memory::pinned, kCopied, "bytes to measure copies with"),
               to = device.allocate(Memory::device, kCopied, "bytes to measure copies with");
  std::memset(from.data(), 1, kCopied);
  for (const int lanes : kUnderWay) {
    std::vector<std::unique_ptr<Stream>> streams;
    for (int i = 0; i < lanes; i++) streams.push_back(device.make_stream("copy", false));
    std::vector<double> passes;
    for (int pass = 0; pass < 6; pass++) {
      const auto begin = Clock::now();
      for (size_t at = 0, i = 0; at < kCopied; at += kCopy, i++)
        streams[i % streams.size()]->copy(static_cast<std::byte*>(to.data()) + at,
                                          static_cast<const std::byte*>(from.data()) + at, kCopy);
      for (const auto& stream : streams) stream->synchronize();
      if (pass > 0)
        passes.push_back(double(kCopied) / since(begin));  // the first touches the pages
    }
    rates.copy.points.emplace_back(lanes, median(std::move(passes)));
  }
}

File largest_file(const std::string& model) {
  const ModelFiles files = open_model(model);
  const auto largest =
      std::max_element(files.checkpoint.files().begin(), files.checkpoint.files().end(),
                       [](const File& a, const File& b) { return a.size() < b.size(); });
  if (largest == files.checkpoint.files().end() || largest->size() < kLeastFile)
    fail(Fault::bad_config, "--model: {}: no file of at least {} MiB, which measuring takes", model,
         kLeastFile >> 20);
  return largest->reopened(Caching::direct);
}

DiskMeasure measure_disk(Device& device, const std::string& folder, const File* stored,
                         MachineRates& rates, const Measuring& measuring) {
  measuring(fmt::format("the disk of {}", folder));
  const Checkpoint checkpoint = as_tensors(ReadFile(folder).take());
  const File& file = checkpoint.files().front();
  const Buffer memory = device.allocate(Memory::pinned, Requests::kMemory + File::kBlock,
                                        "memory to measure the disk with");
  std::memset(memory.data(), 1, memory.bytes());
  const auto address = reinterpret_cast<uintptr_t>(memory.data());
  auto* const aligned = static_cast<std::byte*>(memory.data()) +
                        (align_up(address, uintptr_t{File::kBlock}) - address);
  rates.disk_read = disk_rates([&](const Requests& list, int under_way) {
    return read_seconds(file, aligned, list, under_way);
  });
  rates.disk_write = disk_rates([&](const Requests& list, int under_way) {
    return write_seconds(folder, aligned, list, under_way);
  });
  rates.file_read = rates.disk_read;
  DiskMeasure measured{folder, file.is_direct(), ""};
  if (stored) {
    measured.file = stored->path();
    rates.file_read = disk_rates([&](const Requests& list, int under_way) {
      return read_seconds(*stored, aligned, list, under_way);
    });
  }
  for (const StoredTensor& tensor : checkpoint.tensors())
    rates.packing.push_back(packing(checkpoint, tensor, device.ops(), aligned));
  return measured;
}

}  // namespace hydrant
