// cp.async: the engine keeps who is to copy what, and the kernel copies when it waits.
#include <bit>

#include "test/cuda/emu/engine.hpp"
#include "test/cuda/emu/sanitizers.hpp"

namespace emu {

void Engine::copy_later(const Copy& copy, Place place) {
  const Quiet quiet;
  for (const void* at : {static_cast<const void*>(copy.to), copy.from})
    if (std::bit_cast<uintptr_t>(at) % 16 != 0)
      fail(place, "cp.async with %p, which is not aligned to 16 bytes", at);
  if (self_->copies.empty()) self_->copies.emplace_back();
  self_->copies.back().push_back(copy);
}

void Engine::end_copies() {
  const Quiet quiet;
  if (self_->copies.empty()) self_->copies.emplace_back();
  self_->copies.emplace_back();
}

bool Engine::take_copy(Copy& copy, size_t groups) {
  const Quiet quiet;
  auto& waiting = self_->copies;
  while (waiting.size() > groups + 1 && waiting.front().empty()) waiting.erase(waiting.begin());
  if (waiting.size() <= groups + 1) return false;
  copy = waiting.front().back();
  waiting.front().pop_back();
  return true;
}

void copy_later(void* to, const void* from, Place place) {
  Engine::of_this_thread().copy_later({to, from}, place);
}
void end_copies() { Engine::of_this_thread().end_copies(); }
bool take_copy(Copy& copy, size_t groups) {
  return Engine::of_this_thread().take_copy(copy, groups);
}
}  // namespace emu
