#include "test/cuda/emu/engine.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "test/cuda/emu/sanitizers.hpp"
#include "test/cuda/emu/settings.hpp"

namespace emu {

thread_local Thread* current = nullptr;
thread_local Grid* geometry = nullptr;

namespace {

thread_local std::unique_ptr<Engine> engine;

// In race mode switching orders nothing, and what does is said by these.
void acquire(void* tag) {
  if (__tsan_acquire && settings().race) __tsan_acquire(tag);
}
void release_tag(void* tag) {
  if (__tsan_release && settings().race) __tsan_release(tag);
}

bool same(Place a, Place b) {
  return a.line == b.line && (a.file == b.file || std::strcmp(a.file, b.file) == 0);
}

// Poisoned with NaN, fenced in, and without a history for ThreadSanitizer.
void* new_shared(size_t bytes) {
  constexpr size_t kLine = 128;
  const size_t whole = (bytes + kLine) / kLine * kLine;  // at least a byte behind the end
  void* const memory = std::aligned_alloc(kLine, whole);
  std::memset(memory, 0xff, whole);
  if (__msan_poison) __msan_poison(memory, bytes);
  if (__asan_poison_memory_region)
    __asan_poison_memory_region(static_cast<char*>(memory) + bytes, whole - bytes);
  return memory;
}

void free_shared(void* memory) {
  if (memory && __asan_unpoison_memory_region)
    __asan_unpoison_memory_region(memory, 1);  // free() unpoisons the rest
  std::free(memory);
}

}  // namespace

void fail(Place place, const char* format, ...) {
  std::fprintf(stderr, "EMU ERROR %s:%d: ", place.file ? place.file : "?", place.line);
  va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  if (const Engine* e = Engine::if_any(); e && e->self()) {
    const uint3 at = e->grid().block_index;
    std::fprintf(stderr, " [%s, block (%u,%u,%u), thread %u]", e->kernel(), at.x, at.y, at.z,
                 e->self()->thread.linear);
  }
  std::fprintf(stderr, "\n");
  std::fflush(stderr);
  std::abort();
}

Engine::Engine() : barrier_tag_(new char[2]), random_(settings().seed) {}

Engine::~Engine() {
  for (Fiber* fiber : all_) destroy_fiber(fiber);
}

Engine& Engine::of_this_thread() {
  if (!engine) engine = std::make_unique<Engine>();
  return *engine;
}
Engine* Engine::if_any() { return engine.get(); }

template <class T>
void Engine::arrange(std::vector<T>& items) {
  if (settings().order == Order::reverse) std::reverse(items.begin(), items.end());
  if (settings().order == Order::random) std::shuffle(items.begin(), items.end(), random_);
}

void Engine::make_ready(std::vector<int>& threads) {
  arrange(threads);
  ready_.insert(ready_.end(), threads.begin(), threads.end());
  threads.clear();
}

int Engine::next_ready() {
  if (ready_head_ == ready_.size()) return -1;
  if (settings().order == Order::random)
    std::swap(ready_[ready_head_], ready_[ready_head_ + random_() % (ready_.size() - ready_head_)]);
  const int thread = ready_[ready_head_++];
  if (ready_head_ > 4096 && ready_head_ * 2 > ready_.size()) {
    ready_.erase(ready_.begin(), ready_.begin() + std::ptrdiff_t(ready_head_));
    ready_head_ = 0;
  }
  return thread;
}

// Tells the sanitizers, then switches; a null fiber stands for the OS thread's own stack.
void Engine::go(Context& from, void*& fake_stack, Fiber* to) {
  if (__tsan_switch_to_fiber)
    __tsan_switch_to_fiber(to ? to->tsan : main_tsan_, settings().race ? 1u : 0u);
  if (__sanitizer_start_switch_fiber)
    __sanitizer_start_switch_fiber(&fake_stack, to ? to->stack : main_stack_,
                                   to ? kStackBytes : main_stack_bytes_);
  running_ = to;
  switch_context(from, to ? to->context : main_);
  if (__sanitizer_finish_switch_fiber)
    __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
}

void fiber_main() {
  Engine& e = Engine::of_this_thread();
  if (__sanitizer_finish_switch_fiber) {
    const void* bottom;
    size_t bytes;
    __sanitizer_finish_switch_fiber(nullptr, &bottom, &bytes);
    if (!e.main_stack_) e.main_stack_ = bottom, e.main_stack_bytes_ = bytes;
  }
  e.serve();
}

// Runs one thread after another on this fiber's stack, as long as threads begin; then lends it out.
void Engine::serve() {
  Fiber* const me = running_;
  for (;;) {
    acquire(&start_tag_);
    (*body_)();
    Fiber* to = nullptr;
    bool again = false;
    {
      const Quiet quiet;
      thread_ends();
      if (const int next = next_ready(); next >= 0) {
        BlockThread& thread = threads_[size_t(next)];
        again = !thread.fiber && !settings().race;
        if (again) thread.fiber = me;
        if (!thread.fiber) thread.fiber = fiber_for(size_t(next));
        activate(next);
        to = thread.fiber;
      }
      if (!again) idle_.push_back(me);
    }
    if (!again) go(me->context, me->fake_stack, to);
  }
}

Fiber* Engine::new_fiber() {
  all_.push_back(make_fiber(fiber_main));
  return all_.back();
}

// In race mode each thread has an identity of its own, and blocks that follow each other share
// none: a missing fence between them is seen.
Fiber* Engine::fiber_for(size_t thread) {
  if (settings().race) {
    constexpr size_t kMost = 1024;
    raced_.resize(2 * kMost);
    Fiber*& fiber = raced_[(blocks_ & 1) * kMost + thread];
    return fiber ? fiber : fiber = new_fiber();
  }
  if (idle_.empty()) return new_fiber();
  Fiber* const fiber = idle_.back();
  idle_.pop_back();
  return fiber;
}

void Engine::activate(int thread) {
  self_ = &threads_[size_t(thread)];
  current = &self_->thread;
  self_->state = State::ready;
}

void Engine::reschedule(Fiber* from) {
  const int next = next_ready();
  if (next < 0) return go(from->context, from->fake_stack, nullptr);  // nobody can: a deadlock
  BlockThread& thread = threads_[size_t(next)];
  if (!thread.fiber) thread.fiber = fiber_for(size_t(next));
  activate(next);
  if (thread.fiber != from) go(from->context, from->fake_stack, thread.fiber);
}

void Engine::wait() {
  self_->state = State::waiting;
  reschedule(self_->fiber);
}

void Engine::release_block() {
  for (const BlockThread& t : threads_)
    if (t.state == State::waiting) woken_.push_back(int(t.thread.linear));
  make_ready(woken_);
  at_barrier_ = 0;
  generation_++;
}

void Engine::sync_block(Place place) {
  const Quiet quiet;
  const uint64_t parity = generation_ & 1;
  release_tag(&barrier_tag_[parity]);
  if (at_barrier_ > 0 && !same(barrier_, place))
    fail(place, "barrier divergence: other threads wait at %s:%d", barrier_.file, barrier_.line);
  barrier_ = place;
  if (live_ != int(threads_.size()))
    fail(place, "a barrier after %d of %zu threads have ended", int(threads_.size()) - live_,
         threads_.size());
  if (++at_barrier_ == live_)
    release_block();
  else
    wait();
  acquire(&barrier_tag_[parity]);
}

void Engine::release(size_t warp, Rendezvous& meeting, int except) {
  for (int lane = 0; lane < 32; lane++)
    if (const int thread = int(warp) * 32 + lane; (meeting.arrived >> lane & 1) && thread != except)
      woken_.push_back(thread);
  make_ready(woken_);
  meeting.came[meeting.generation & 1] = meeting.arrived;
  meeting.arrived = 0;
  meeting.generation++;
}

Exchange Engine::exchange(unsigned mask, WarpOp op, const void* value, size_t bytes, Place place) {
  const Quiet quiet;
  const unsigned thread = self_->thread.linear, lane = thread % 32;
  Warp& warp = warps_[thread / 32];
  if (!(mask >> lane & 1))
    fail(place, "lane %u calls a warp operation with mask 0x%08x, which leaves it out", lane, mask);
  Rendezvous* found = nullptr;
  for (const auto& m : warp.meetings)
    if (m->mask == mask) found = m.get();
  if (!found) {
    warp.meetings.push_back(std::make_unique<Rendezvous>());
    found = warp.meetings.back().get();
    found->mask = mask;
  }
  Rendezvous& meeting = *found;
  if (meeting.arrived && (meeting.op != op || !same(meeting.place, place)))
    fail(place, "warp divergence: other lanes of mask 0x%08x wait at %s:%d", mask,
         meeting.place.file, meeting.place.line);
  meeting.op = op;
  meeting.place = place;
  const uint64_t parity = meeting.generation & 1;
  if (bytes > 0) std::memcpy(meeting.slots[parity][lane].bytes, value, bytes);
  if (op == WarpOp::sync) release_tag(&meeting.tag[parity]);
  meeting.arrived |= 1u << lane;
  if (meeting.arrived == (mask & warp.live))
    release(thread / 32, meeting, int(thread));
  else
    wait();
  if (op == WarpOp::sync) acquire(&meeting.tag[parity]);
  return {meeting.slots[parity], meeting.came[parity]};
}

void Engine::thread_ends() {
  const unsigned thread = self_->thread.linear;
  Warp& warp = warps_[thread / 32];
  self_->state = State::done;
  for (const auto& group : self_->copies)
    if (!group.empty()) fail({name_, 0}, "a thread ends without waiting for its copies");
  live_--;
  warp.live &= ~(1u << (thread % 32));
  release_tag(&done_tag_);
  if (at_barrier_ > 0) fail(barrier_, "a thread ends while %d wait at this barrier", at_barrier_);
  for (const auto& meeting : warp.meetings)
    if (meeting->arrived && meeting->arrived == (meeting->mask & warp.live))
      release(thread / 32, *meeting, -1);
}

void* Engine::named_shared(const void* key, size_t bytes) {
  const Quiet quiet;
  for (const Named& n : named_)
    if (n.key == key) return n.memory;
  shared_used_ += bytes;
  if (shared_used_ > kSharedBytes)
    fail({name_, 0}, "more than %zu bytes of shared memory", kSharedBytes);
  named_.push_back({key, new_shared(bytes)});
  return named_.back().memory;
}

void Engine::start_threads() {
  const unsigned count = grid_.block.x * grid_.block.y * grid_.block.z;
  for (unsigned i = 0; i < count; i++) {
    const uint3 index{i % grid_.block.x, i / grid_.block.x % grid_.block.y,
                      i / grid_.block.x / grid_.block.y};
    threads_[i] = {{index, i}, State::fresh, nullptr, {}};
    woken_.push_back(int(i));
  }
  for (size_t w = 0; w < warps_.size(); w++) {
    const unsigned lanes = std::min(32u, count - unsigned(w) * 32);
    warps_[w].live = lanes == 32 ? kAllLanes : (1u << lanes) - 1;
    if (settings().race)
      warps_[w].meetings.clear();
    else
      for (auto& meeting : warps_[w].meetings) meeting->arrived = 0;
  }
  if (settings().race) barrier_tag_.reset(new char[2]);
  live_ = int(count);
  at_barrier_ = 0;
  ready_.clear();
  ready_head_ = 0;
  make_ready(woken_);
}

void Engine::run_block() {
  start_threads();
  shared_ = shared_bytes_ > 0 ? new_shared(shared_bytes_) : nullptr;
  shared_used_ = shared_bytes_;
  if (__tsan_get_current_fiber) main_tsan_ = __tsan_get_current_fiber();
  blocks_++;
  if (settings().race)  // here: an identity inherits the history of the context that makes it
    for (size_t i = 0; i < threads_.size(); i++) threads_[i].fiber = fiber_for(i);
  release_tag(&start_tag_);
  const int first = next_ready();
  BlockThread& thread = threads_[size_t(first)];
  if (!thread.fiber) thread.fiber = fiber_for(size_t(first));
  activate(first);
  go(main_, main_fake_, thread.fiber);
  if (live_ > 0) report_deadlock();
  self_ = nullptr;
  current = nullptr;
  free_shared(shared_);
  for (const Named& n : named_) free_shared(n.memory);
  named_.clear();
}

void Engine::report_deadlock() {
  for (BlockThread& t : threads_)
    if (t.state == State::waiting) self_ = &t;
  for (const auto& meeting : warps_[self_->thread.linear / 32].meetings)
    if (meeting->arrived)
      fail(meeting->place, "deadlock: of mask 0x%08x only lanes 0x%08x have come", meeting->mask,
           meeting->arrived);
  fail(barrier_, "deadlock: %d of %d threads at the barrier", at_barrier_, live_);
}

void Engine::run(const char* name, dim3 grid, dim3 block, size_t shared_bytes,
                 const std::function<void()>& body) {
  const Quiet quiet;
  body_ = &body;
  name_ = name;
  grid_.block = block;
  grid_.grid = grid;
  const size_t count = size_t{block.x} * block.y * block.z;
  threads_.resize(count);
  warps_.resize((count + 31) / 32);
  shared_bytes_ = shared_bytes;
  geometry = &grid_;
  std::vector<uint64_t> blocks(size_t{grid.x} * grid.y * grid.z);
  for (size_t i = 0; i < blocks.size(); i++) blocks[i] = i;
  arrange(blocks);
  for (const uint64_t i : blocks) {
    grid_.block_index = {unsigned(i % grid.x), unsigned(i / grid.x % grid.y),
                         unsigned(i / grid.x / grid.y)};
    run_block();
  }
  acquire(&done_tag_);
}

// The functions that kernels call.

void run_grid(const char* name, dim3 grid, dim3 block, size_t shared_bytes,
              const std::function<void()>& body) {
  Engine::of_this_thread().run(name, grid, block, shared_bytes, body);
}
void sync_block(Place place) { Engine::of_this_thread().sync_block(place); }
Exchange warp_exchange(unsigned mask, WarpOp op, const void* value, size_t bytes, Place place) {
  return Engine::of_this_thread().exchange(mask, op, value, bytes, place);
}
void* dynamic_shared() { return Engine::of_this_thread().dynamic_shared(); }
void* named_shared(const void* key, size_t bytes) {
  return Engine::of_this_thread().named_shared(key, bytes);
}
// All fences are ordered with each other: a little more than CUDA promises.
void fence() {
  static char tag;
  acquire(&tag);
  release_tag(&tag);
}

}  // namespace emu
