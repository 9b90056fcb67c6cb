#include "runtime/device/host_memory.hpp"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "runtime/base/error.hpp"

using namespace hydrant;

namespace {

constexpr size_t kMiB = size_t{1} << 20;

uintptr_t address(const Buffer& b) { return reinterpret_cast<uintptr_t>(b.data()); }

size_t resident_pages(const Buffer& b) {
  const auto page = size_t(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> in((b.bytes() + page - 1) / page);
  REQUIRE(mincore(b.data(), b.bytes(), in.data()) == 0);
  size_t count = 0;
  for (const unsigned char c : in) count += c & 1;
  return count;
}

// A made-up /proc and /sys.
class FakeRoot {
 public:
  FakeRoot()
      : path_(std::filesystem::temp_directory_path() /
              ("hydrant-memory-" + std::to_string(getpid()))) {
    std::filesystem::remove_all(path_);
  }
  ~FakeRoot() { std::filesystem::remove_all(path_); }
  void write(const std::string& file, const std::string& text) const {
    const std::filesystem::path at = path_.string() + file;
    std::filesystem::create_directories(at.parent_path());
    std::ofstream(at) << text;
  }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace

TEST_CASE("blocks are zero, aligned and not touched before use") {
  HostMemory memory;
  for (const Memory kind : {Memory::device, Memory::pinned, Memory::pageable}) {
    const Buffer small = memory.allocate(kind, 100, "a small block");
    const Buffer large = memory.allocate(kind, 9 * kMiB + 123, "a large block");
    CHECK(small.memory() == kind);
    CHECK(small.bytes() == 100);
    CHECK(large.bytes() == 9 * kMiB + 123);
    CHECK(address(small) % 64 == 0);
    CHECK(address(large) % (2 * kMiB) == 0);
    CHECK(resident_pages(large) == 0);
    auto* bytes = static_cast<unsigned char*>(large.data());
    CHECK(bytes[0] == 0);
    CHECK(bytes[large.bytes() - 1] == 0);
    std::memset(bytes, 1, large.bytes());
  }
  CHECK(memory.allocate(Memory::device, 0, "nothing").data() == nullptr);
}

TEST_CASE("a hopeless request is refused in words") {
  HostMemory memory;
  for (const size_t bytes : {size_t{1} << 50, ~size_t{0}, ~size_t{0} - 4 * kMiB}) try {
      memory.allocate(Memory::device, bytes, "weights of block 7");
      FAIL("got " << bytes << " bytes");
    } catch (const Error& e) {
      CHECK(e.fault() == Fault::out_of_memory);
      CHECK_THAT(e.what(), Catch::StartsWith("weights of block 7: " + std::to_string(bytes)) &&
                               Catch::Contains("available"));
    }
}

TEST_CASE("memory promised and not yet used counts as taken, until it is given back") {
  HostMemory memory;
  const size_t most = available_memory() / 5 * 3;
  for (int round = 0; round < 2; round++) {
    const Buffer first = memory.allocate(Memory::device, most, "weights");
    CHECK(memory.available() < most);
    CHECK_THROWS_AS(memory.allocate(Memory::device, most, "cache"), Error);
  }
}

TEST_CASE("a limited address space limits what is available") {
  std::ifstream statm("/proc/self/statm");
  size_t pages = 0;
  REQUIRE(statm >> pages);
  struct rlimit before {};
  REQUIRE(getrlimit(RLIMIT_AS, &before) == 0);
  struct rlimit limit = before;
  limit.rlim_cur = pages * size_t(sysconf(_SC_PAGESIZE)) + 64 * kMiB;
  REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
  HostMemory memory;
  const size_t available = memory.available();
  const Buffer untouched = memory.allocate(Memory::device, 16 * kMiB, "weights");
  const size_t left = memory.available();
  REQUIRE(setrlimit(RLIMIT_AS, &before) == 0);
  CHECK(available <= 64 * kMiB);
  CHECK(available > 48 * kMiB);         // little is mapped between
  CHECK(left > available - 20 * kMiB);  // counted once
}

TEST_CASE("available memory is the least of the system's and every cgroup's above the process") {
  FakeRoot root;
  root.write("/proc/meminfo", "MemTotal:  9000 kB\nMemFree:  10 kB\nMemAvailable:    4000 kB\n");
  CHECK(available_memory(root.path()) == 4000 * 1024);

  SECTION("cgroup 2, file pages can be dropped") {
    root.write("/proc/self/cgroup", "0::/a/b\n");
    root.write("/sys/fs/cgroup/a/b/memory.max", "max\n");
    root.write("/sys/fs/cgroup/a/b/memory.current", "500000\n");
    CHECK(available_memory(root.path()) == 4000 * 1024);
    root.write("/sys/fs/cgroup/a/memory.max", "1000000\n");
    root.write("/sys/fs/cgroup/a/memory.current", "600000\n");
    CHECK(available_memory(root.path()) == 400000);
    root.write("/sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 100000\nactive_file 20000\n");
    CHECK(available_memory(root.path()) == 520000);
    root.write("/sys/fs/cgroup/a/memory.current", "1300000\n");
    CHECK(available_memory(root.path()) == 0);
  }
  SECTION("cgroup 1") {
    root.write("/proc/self/cgroup", "5:cpu:/x\n4:memory:/x\n0::/\n");
    root.write("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "9223372036854771712\n");
    root.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "800000\n");
    root.write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "500000\n");
    root.write("/sys/fs/cgroup/memory/memory.stat",
               "inactive_file 7\ntotal_inactive_file 1000\ntotal_active_file 0\n");
    CHECK(available_memory(root.path()) == 301000);
  }
}
