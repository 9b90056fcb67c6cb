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
#include "runtime/base/error.hpp"
#include "runtime/model/panel_reader.hpp"

namespace hydrant {
namespace {

constexpr std::array<int, 3> kUnderWay{1, 2, 4};
constexpr size_t kCopy = size_t{4} << 20, kCopied = size_t{128} << 20;
constexpr size_t kFileBytes = size_t{192} << 20;

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
      const std::vector<std::byte> some(kDiskRequest, std::byte{0x2c});
      for (size_t at = 0; at < kFileBytes; at += some.size())
        if (::write(descriptor, some.data(), some.size()) != ssize_t(some.size()))
          fail(Fault::io, "{}: {} bytes to measure the disk with cannot be written: {}", folder,
               kFileBytes, std::strerror(errno));
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

double read_rate(const File& file, int requests) {
  std::atomic<size_t> next = 0;
  const auto begin = Clock::now();
  {
    std::vector<std::jthread> readers;
    for (int i = 0; i < requests; i++)
      readers.emplace_back([&] {
        const size_t room = file.extent(0, kDiskRequest).room;
        const std::unique_ptr<std::byte[], void (*)(std::byte*)> memory(
            static_cast<std::byte*>(std::aligned_alloc(File::kBlock, room)),
            [](std::byte* p) { std::free(p); });
        for (size_t at = next++; at < kFileBytes / kDiskRequest; at = next++)
          file.read_extent(at * kDiskRequest, kDiskRequest, memory.get(), "a file to measure with");
      });
  }
  return double(kFileBytes) / since(begin);
}

double write_rate(const std::string& folder, std::span<std::byte> memory, int requests) {
  const auto file = open_disk_file(SpillFile(folder, kFileBytes, Caching::direct),
                                   DiskEngine::io_uring, requests);
  std::vector<DiskRequest> list;
  for (size_t at = 0; at < kFileBytes; at += kDiskRequest)
    list.push_back({.write = true, .offset = at, .data = memory.data(), .bytes = kDiskRequest});
  const auto begin = Clock::now();
  file->run(list);
  for (const DiskRequest& r : list)
    if (!r.done()) fail(Fault::io, "{}: {}", folder, std::strerror(r.error));
  return double(kFileBytes) / since(begin);
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
    t.rows = int64_t{16} * int64_t(kDiskRequest) / row / kPanelRows * kPanelRows;
    t.columns = kInputs;
    t.shape = {t.rows, t.columns};
    t.bytes = uint64_t(t.rows * row);
  }
  std::vector<File> files;
  files.push_back(std::move(file));
  return {std::move(files), std::move(tensors)};
}

PackRate packing(const Checkpoint& checkpoint, const StoredTensor& tensor, const Ops& ops) {
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
  for (int pass = 0; pass < 3; pass++) {
    const double begin = thread_seconds();
    for (const PanelRun& run : cut({&matrix, 0, panels}))
      reader.read(run, packed.data() + size_t(run.first) * matrix.weight.panel_bytes);
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

DiskMeasure measure_disk(Device& device, const std::string& folder, MachineRates& rates,
                         const Measuring& measuring) {
  measuring(fmt::format("the disk of {}", folder));
  const Checkpoint checkpoint = as_tensors(ReadFile(folder).take());
  const File& file = checkpoint.files().front();
  for (const int requests : kUnderWay) {
    std::vector<double> passes;
    for (int pass = 0; pass < 3; pass++) passes.push_back(read_rate(file, requests));
    rates.disk_read.points.emplace_back(requests, median(std::move(passes)));
  }
  const Buffer memory = device.allocate(Memory::pinned, kDiskRequest, "bytes to write");
  std::memset(memory.data(), 1, kDiskRequest);
  for (const int requests : kUnderWay) {
    std::vector<double> passes;
    for (int pass = 0; pass < 3; pass++)
      passes.push_back(
          write_rate(folder, {static_cast<std::byte*>(memory.data()), kDiskRequest}, requests));
    rates.disk_write.points.emplace_back(requests, median(std::move(passes)));
  }
  for (const StoredTensor& tensor : checkpoint.tensors())
    rates.packing.push_back(packing(checkpoint, tensor, device.ops()));
  return {folder, file.is_direct()};
}

}  // namespace hydrant
