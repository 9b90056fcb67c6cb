#include <memory>

#include "runtime/apps/measure.hpp"

namespace hydrant {

// From the time of one row and that of many.
void measure_logits(Device& device, MachineRates& rates, const Measuring& measuring) {
  constexpr int64_t kRows = 32, kVocabulary = 32768;
  measuring("logits");
  const auto stream = device.make_stream("compute", /*inline_work=*/true);
  Tensor logits, best, lse;
  const auto lay_out = [&](Arena& arena) {
    logits = arena.take(DType::f32, {kRows, kVocabulary});
    best = arena.take(DType::i32, {kRows});
    lse = arena.take(DType::f32, {kRows});
  };
  Arena size;
  lay_out(size);
  const Buffer memory = device.allocate(Memory::device, size.used(), "logits to measure with");
  Arena arena(memory);
  lay_out(arena);
  const std::vector<std::byte> numbers(memory.bytes(), std::byte{0x2c});
  stream->copy(memory.data(), numbers.data(), memory.bytes());
  const auto seconds = [&](int64_t rows) {
    return seconds_of_call([&](size_t) {
      device.ops().summarize_logits(
          *stream, {ConstTensor(logits.data, DType::f32, {rows, kVocabulary}),
                    Tensor{best.data, DType::i32, {rows}}, Tensor{lse.data, DType::f32, {rows}}});
      stream->synchronize();
    });
  };
  const double one = seconds(1), many = seconds(kRows);
  rates.logits.element = std::max(many - one, 0.0) / double((kRows - 1) * kVocabulary);
  rates.logits.call = std::max(one - rates.logits.element * double(kVocabulary), 0.0);
}

}  // namespace hydrant
