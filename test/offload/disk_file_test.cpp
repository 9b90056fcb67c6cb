// The file that caches spill to, and what does its requests.
#include "offload/disk_file.hpp"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <thread>

#include "test/support/random.hpp"
#include "test/support/refusal.hpp"
#include "test/support/temporary_folder.hpp"

using namespace hydrant;
using namespace hydrant::test;
using Catch::Matchers::Contains;

namespace {

constexpr size_t kBlock = File::kBlock, kBlocks = 64;

struct Blocks {
  explicit Blocks(size_t count)
      : data(static_cast<std::byte*>(std::aligned_alloc(kBlock, count * kBlock)), std::free) {}
  std::byte* at(size_t block) const { return data.get() + block * kBlock; }
  std::unique_ptr<std::byte, void (*)(void*)> data;
};

// Writes everything in random order and pieces, reads it in others, and once behind the end.
void check_file(DiskFile& file) {
  Random random(3);
  const Blocks wrote(kBlocks), got(kBlocks);
  for (size_t i = 0; i < kBlocks * kBlock; i++) wrote.data.get()[i] = std::byte(random.bits());
  const auto all = [&](bool write, const Blocks& memory) {
    std::vector<DiskRequest> requests;
    for (size_t block = 0; block < kBlocks;) {
      const size_t count = std::min(kBlocks - block, size_t(1 + random.below(5)));
      requests.push_back({write, block * kBlock, memory.at(block), count * kBlock});
      block += count;
    }
    for (size_t i = requests.size(); i > 1; i--)
      std::swap(requests[i - 1], requests[size_t(random.below(int64_t(i)))]);
    file.run(requests);
    for (const DiskRequest& r : requests) {
      REQUIRE(r.error == 0);
      REQUIRE(r.done());
    }
  };
  for (int again = 0; again < 3; again++) {
    all(true, wrote);
    std::memset(got.data.get(), 0, kBlocks * kBlock);
    all(false, got);
    REQUIRE(std::memcmp(got.data.get(), wrote.data.get(), kBlocks * kBlock) == 0);
  }
  file.run({});
  std::vector<DiskRequest> behind{{false, (kBlocks - 1) * kBlock, got.at(0), 2 * kBlock},
                                  {false, kBlocks * kBlock, got.at(2), kBlock},
                                  {false, 0, got.at(3), kBlock}};
  file.run(behind);
  CHECK(behind[0].moved == kBlock);
  CHECK(behind[1].moved == 0);
  CHECK(behind[2].done());
  for (const DiskRequest& r : behind) CHECK(r.error == 0);
  std::vector<DiskRequest> unreadable{{false, 0, nullptr, kBlock}, {false, 0, got.at(0), kBlock}};
  file.run(unreadable);
  CHECK(unreadable[0].error == EFAULT);
  CHECK(unreadable[1].done());
}

// From now on, for this thread alone.
void forbid_io_uring() {
  const auto code = [](int c) { return static_cast<unsigned short>(c); };
  sock_filter filter[] = {
      {code(BPF_LD | BPF_W | BPF_ABS), 0, 0, offsetof(seccomp_data, nr)},
      {code(BPF_JMP | BPF_JEQ | BPF_K), 0, 1, __NR_io_uring_setup},
      {code(BPF_RET | BPF_K), 0, 0, SECCOMP_RET_ERRNO | EPERM},
      {code(BPF_RET | BPF_K), 0, 0, SECCOMP_RET_ALLOW},
  };
  const sock_fprog program{code(std::size(filter)), filter};
  REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  REQUIRE(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0);
}

}  // namespace

TEST_CASE("requests of the file do what they say, several at a time") {
  const TemporaryFolder folder;
  for (const std::string& where : {folder.path(), std::string("/dev/shm")})
    for (const Caching caching : {Caching::direct, Caching::cached})
      for (const DiskEngine engine : {DiskEngine::io_uring, DiskEngine::threads})
        for (const int requests : {1, 4, 33}) {
          CAPTURE(where, int(caching), int(engine), requests);
          SpillFile spill(where, kBlocks * kBlock, caching);
          if (caching == Caching::cached) CHECK(!spill.is_direct());
          check_file(*open_disk_file(std::move(spill), engine, requests));
        }
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("where io_uring is forbidden, threads do the same") {
  const TemporaryFolder folder;
  std::thread([&] {
    forbid_io_uring();
    REQUIRE(syscall(__NR_io_uring_setup, 1, nullptr) == -1);
    check_file(*open_disk_file(SpillFile(folder.path(), kBlocks * kBlock, Caching::direct),
                               DiskEngine::io_uring, 4));
  }).join();
}

TEST_CASE("a file that cannot be made or reserved is refused, and nothing is left") {
  const TemporaryFolder folder;
  const std::string path = folder.path();
  const auto refused = [](const std::string& where, uint64_t bytes) {
    return refusal(Fault::io, [&] { SpillFile(where, bytes, Caching::direct); });
  };
  CHECK_THAT(refused(path, uint64_t{1} << 55),
             Contains("memory.folder: " + path +
                      ": 36028797018963968 bytes for the cache cannot "
                      "be reserved") &&
                 Contains("are free: No space left on device"));
  CHECK(refused(path + "/none", 4096) ==
        "memory.folder: " + path + "/none: no file can be made there: No such file or directory");
  CHECK(std::filesystem::is_empty(path));
}
