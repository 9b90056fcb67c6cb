#include "runtime/backends/cpu/kernels/elementwise.hpp"

#include <cmath>
#include <cstring>

#include "runtime/backends/cpu/kernels/elementwise_paths.hpp"
#include "runtime/backends/cpu/kernels/fork.hpp"
#include "runtime/base/error.hpp"

namespace hydrant::cpu {

const ElementwisePath& elementwise_path(Isa isa) {
  switch (isa) {
    case Isa::generic:
      return generic::elementwise;
    case Isa::avx2:
      return avx2::elementwise;
    case Isa::avx512:
    case Isa::avx512_bf16:
    case Isa::amx:
      break;
  }
  return avx512::elementwise;
}

void normalize(ThreadPool& pool, Isa isa, const NormalizeArgs& args) {
  const auto row = elementwise_path(isa).normalize;
  const int64_t rows = args.in.shape[0], width = args.in.shape[1];
  const NormalizeRow how{args.kind, args.gain.as<float>(), args.bias.as<float>(), args.epsilon,
                         width};
  split_large(pool, rows, rows * width, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; i++)
      row(how, args.in.as<float>() + i * width, args.out.as<float>() + i * width);
  });
}

void gate(ThreadPool& pool, Isa isa, const GateArgs& args) {
  const auto row = elementwise_path(isa).gate;
  const int64_t rows = args.out.shape[0], width = args.out.shape[1];
  split_large(pool, rows, rows * width, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; i++) {
      const float* in = args.in.as<float>() + i * 2 * width;
      row(args.kind, in, in + width, width, args.out.as<float>() + i * width);
    }
  });
}

void gather(ThreadPool& pool, const GatherArgs& args) {
  const int64_t rows = args.indices.shape[0], width = args.in.shape[1];
  const auto* indices = args.indices.as<int32_t>();
  for (int64_t i = 0; i < rows; i++)
    ensure(indices[i] >= 0 && indices[i] < args.in.shape[0], "gather: index {} is {}, of {} rows",
           i, indices[i], args.in.shape[0]);
  if (width == 0) return;
  split_large(pool, rows, rows * width, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; i++)
      std::memcpy(args.out.as<float>() + i * width, args.in.as<float>() + indices[i] * width,
                  size_t(width) * sizeof(float));
  });
}

void rotary_table(ThreadPool& pool, const RotaryTableArgs& args) {
  constexpr int64_t kCost = 64;  // a sine and a cosine in double, against an element of vector work
  const int64_t rows = args.out.shape[0], count = args.out.shape[1];
  const auto* frequency = args.inverse_frequency.as<float>();
  split_large(pool, rows, rows * count * kCost, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; i++) {
      const double position = args.positions.as<int32_t>()[i];
      float* out = args.out.as<float>() + i * count * 2;
      for (int64_t j = 0; j < count; j++) {
        const double angle = position * double(frequency[j]);
        out[2 * j] = float(std::cos(angle));
        out[2 * j + 1] = float(std::sin(angle));
      }
    }
  });
}

namespace {

constexpr int64_t kPiece = 4096;  // fixed, so that sums do not depend on threads

// The lowest id of the greatest value, and the log of the sum of exp, from a row's pieces.
void merge(const float* logits, int64_t vocab, const LogitsPiece* pieces, int32_t& best,
           float& lse) {
  const int64_t count = (vocab + kPiece - 1) / kPiece;
  int64_t top = 0;
  for (int64_t p = 1; p < count; p++)
    if (pieces[p].max > pieces[top].max) top = p;
  const float most = pieces[top].max;
  double sum = 0;
  for (int64_t p = 0; p < count; p++)
    sum += double(pieces[p].sum) * std::exp(double(pieces[p].max) - double(most));
  // NaN where a value was NaN, +inf, or all are -inf. The id stays one that can be looked up.
  lse = float(double(most) + std::log(sum));
  best = 0;
  if (std::isnan(lse)) return;
  int64_t id = top * kPiece;
  while (logits[id] != most) id++;
  best = int32_t(id);
}

}  // namespace

void summarize_logits(ThreadPool& pool, Isa isa, const SummarizeLogitsArgs& args,
                      std::vector<LogitsPiece>& scratch) {
  const auto summarize = elementwise_path(isa).summarize;
  const int64_t rows = args.logits.shape[0], vocab = args.logits.shape[1];
  const int64_t pieces = (vocab + kPiece - 1) / kPiece;
  if (scratch.size() < size_t(rows * pieces)) scratch.resize(size_t(rows * pieces));
  split_large(pool, rows * pieces, rows * vocab, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; i++) {
      const int64_t first = i % pieces * kPiece;
      scratch[size_t(i)] = summarize(args.logits.as<float>() + i / pieces * vocab + first,
                                     std::min(kPiece, vocab - first));
    }
  });
  for (int64_t row = 0; row < rows; row++)
    merge(args.logits.as<float>() + row * vocab, vocab, scratch.data() + row * pieces,
          args.best.as<int32_t>()[row], args.lse.as<float>()[row]);
}

}  // namespace hydrant::cpu
