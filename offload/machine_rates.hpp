// What a machine takes for what a run is made of, as `hydrant profile` measures it. Seconds, bytes,
// bytes a second.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/dtype.hpp"
#include "runtime/device/kinds.hpp"

namespace hydrant {

// A quantity by a size: straight lines between measured points, in ascending order. Below the first
// point its value; above the last one its value, or the last line goes on.
struct Curve {
  enum class Beyond : uint8_t { level, straight };
  std::vector<std::pair<double, double>> points;
  Beyond beyond = Beyond::level;

  double at(double size) const;
};

// Products of one kind: a call on t rows of k inputs with n outputs takes
// call(t * k) + n * k * weight(t).
struct ProductRate {
  DType format = DType::f32;
  Activations activations = Activations::f32;
  Curve weight;  // by rows: seconds for each weight, which is read from memory
  Curve call;    // by elements of the input: seconds, for rounding and packing them
};

struct AttentionRate {
  DType dtype = DType::bf16;
  Curve decode;   // by query heads for each KV head: seconds for each component of a slot's key
  Curve scored;   // the same, for what scoring, choosing and moving take beside that
  Curve prompt;   // by components of a head: seconds for each (query head, query, key)
  Curve columns;  // the same, for the column sums of scored rows
};

// Requests of a disk, by how many are under way. So many of them that move so many bytes take
// requests * request + bytes * byte, all together.
struct DiskRates {
  Curve request;  // seconds: what each takes beside its bytes
  Curve byte;     // seconds

  double seconds(double requests, double bytes, double under_way) const {
    return requests * request.at(under_way) + bytes * byte.at(under_way);
  }
};

// The bus between host memory and a device's own, for pinned memory: bytes a second by the bytes of
// a copy, each way alone and while the other way is busy as well. Empty where there is no bus.
struct BusRates {
  Curve up, down, up_shared, down_shared;

  bool measured() const { return !up.points.empty(); }
};

// An operation on elements.
struct OperationRate {
  double call = 0, element = 0;  // seconds
};

// CPU time of a thread that reads weights of a format past the page cache: reading, checking and
// packing, without waiting.
struct PackRate {
  DType format = DType::f32;
  double byte = 0;  // seconds
};

struct MachineRates {
  std::string source = "the profile";  // what is named where something was not measured
  std::string device, isa, processor;  // "cpu", "avx512-bf16", "AMD EPYC"
  int threads = 0, cores = 0;          // those of the measured products; those there are

  double memory = 0;  // bytes a second that all threads together read
  Curve copy;         // by copies under way: bytes a second, host to device
  BusRates bus;
  DiskRates disk_read, disk_write;  // of a file that a run writes
  // Of the model's files: what has been on a disk for long may come slower than what was just
  // written. As disk_read where it was not measured.
  DiskRates file_read;
  double fork_join = 0;  // seconds, of a product with next to nothing to do
  // By elements of a block's activations (CostModel::block_elements): seconds that a block of a
  // running step takes beside its products and its attention.
  Curve block;
  OperationRate logits;  // of the maximum and the sum of a row
  std::vector<ProductRate> products;
  std::vector<AttentionRate> attention;
  std::vector<PackRate> packing;

  // Throw bad_config naming what was not measured.
  const ProductRate& product(DType format, Activations activations) const;
  const AttentionRate& attention_of(DType dtype) const;
  double pack_byte(DType format) const;
};

}  // namespace hydrant
