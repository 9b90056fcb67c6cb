// The state of the block that an OS thread is running, and who goes next.
#pragma once
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "test/cuda/emu/block.hpp"
#include "test/cuda/emu/fiber.hpp"

namespace emu {

inline constexpr size_t kSharedBytes = size_t{227} << 10;
inline constexpr unsigned kAllLanes = ~0u;

enum class State : uint8_t { fresh, ready, waiting, done };

struct BlockThread {
  Thread thread;
  State state = State::fresh;
  Fiber* fiber = nullptr;
  std::vector<std::vector<Copy>> copies{};  // the last group is open
};

// Lanes of one mask that meet. Two generations, for a lane may come again before others have read.
struct Rendezvous {
  unsigned mask = 0, arrived = 0;
  WarpOp op = WarpOp::sync;
  Place place{};
  uint64_t generation = 0;
  Slot slots[2][32];
  unsigned came[2] = {0, 0};
  char tag[2] = {0, 0};  // what ThreadSanitizer is told of order by
};
struct Warp {
  unsigned live = 0;
  std::vector<std::unique_ptr<Rendezvous>> meetings;
};

class Engine {
 public:
  Engine();
  ~Engine();
  static Engine& of_this_thread();
  static Engine* if_any();

  void run(const char* name, dim3 grid, dim3 block, size_t shared_bytes,
           const std::function<void()>& body);
  void sync_block(Place place);
  Exchange exchange(unsigned mask, WarpOp op, const void* value, size_t bytes, Place place);
  void copy_later(const Copy& copy, Place place);
  void end_copies();
  bool take_copy(Copy& copy, size_t groups);
  void* dynamic_shared() const { return shared_; }
  void* named_shared(const void* key, size_t bytes);
  const char* kernel() const { return name_; }
  const Grid& grid() const { return grid_; }
  const BlockThread* self() const { return self_; }
  uint64_t blocks() const { return blocks_; }

 private:
  friend void fiber_main();
  void run_block();
  void start_threads();
  [[noreturn]] void report_deadlock();
  void thread_ends();
  void serve();
  void release_block();
  void release(size_t warp, Rendezvous& meeting, int except);
  void wait();
  int next_ready();
  void reschedule(Fiber* from);
  void go(Context& from, void*& fake_stack, Fiber* to);
  Fiber* new_fiber();
  Fiber* fiber_for(size_t thread);
  void activate(int thread);
  void make_ready(std::vector<int>& threads);  // empties it
  template <class T>
  void arrange(std::vector<T>& items);

  std::vector<BlockThread> threads_;
  std::vector<Warp> warps_;
  std::vector<Fiber*> all_, idle_, raced_;
  Context main_;
  void *main_tsan_ = nullptr, *main_fake_ = nullptr;
  const void* main_stack_ = nullptr;
  size_t main_stack_bytes_ = 0;
  Fiber* running_ = nullptr;
  BlockThread* self_ = nullptr;

  std::vector<int> ready_;  // threads from ready_head_ on
  size_t ready_head_ = 0;
  std::vector<int> woken_;  // kept only for its memory
  int live_ = 0, at_barrier_ = 0;
  uint64_t generation_ = 0, blocks_ = 0;
  Place barrier_{};
  // New for each block, or barriers of one block would seem to order another.
  std::unique_ptr<char[]> barrier_tag_;
  char start_tag_ = 0, done_tag_ = 0;

  const std::function<void()>* body_ = nullptr;
  const char* name_ = "";
  Grid grid_{};
  std::mt19937 random_;

  struct Named {
    const void* key;
    void* memory;
  };
  std::vector<Named> named_;
  void* shared_ = nullptr;
  size_t shared_bytes_ = 0, shared_used_ = 0;
};

}  // namespace emu
