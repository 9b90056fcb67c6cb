// Random weights as files hold them, what they mean, and products with them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/backends/cpu/isa.hpp"
#include "runtime/backends/cpu/thread_pool.hpp"
#include "runtime/device/ops.hpp"

namespace hydrant::test {

struct FileWeights {
  DType format;
  int64_t n, k;
  std::vector<std::byte> bytes;  // rows of GGUF blocks or plain elements
  std::vector<double> values;    // [n, k], decoded by an implementation of its own
};
FileWeights random_weights(DType format, int64_t n, int64_t k, uint32_t seed);
std::vector<float> random_floats(int64_t count, uint32_t seed);

// Weights packed into panels; the view stays valid while the owner lives.
class PackedWeights {
 public:
  PackedWeights(const FileWeights& file, Activations activations);
  const Weight& weight() const { return weight_; }

 private:
  std::vector<std::byte> storage_;
  Weight weight_;
};

struct LinearCase {
  std::vector<Weight> parts;
  std::vector<float> bias, residual;  // empty: none
  Activation after = Activation::none;
};
// t rows of x [t, k] -> [t, sum of n]
std::vector<float> product(cpu::ThreadPool& pool, cpu::Isa isa, const LinearCase& c,
                           std::span<const float> x, int64_t t);

struct Product {
  DType format;
  Activations activations;
};
std::span<const Product> every_product();       // formats with the activations they may have
std::span<const Product> every_card_product();  // on a card

}  // namespace hydrant::test
