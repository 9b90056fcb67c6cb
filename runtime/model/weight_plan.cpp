#include "runtime/model/weight_plan.hpp"

#include <algorithm>
#include <map>
#include <unordered_set>
#include <utility>

#include "runtime/base/aligned.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/log.hpp"
#include "runtime/device/buffer.hpp"

namespace hydrant {
namespace {

std::string_view name_of(Activations a) {
  constexpr std::string_view kNames[] = {"f32", "bf16", "int8", "f16"};
  return kNames[size_t(a)];
}

const StoredTensor& find_source(const Checkpoint& checkpoint, const TensorSource& source,
                                const std::vector<int64_t>& shape) {
  const StoredTensor* t = nullptr;
  for (const std::string& candidate : source.names)
    if (!t) t = checkpoint.find(candidate);
  if (!t) {
    const std::string file = checkpoint.files().empty() ? "" : checkpoint.files().front().path();
    fail(Fault::bad_file, "{}: tensor {} is missing{}{}", file, source.names.front(),
         source.names.size() == 1 ? ""
                                  : fmt::format(" (so is {})", fmt::join(source.names.begin() + 1,
                                                                         source.names.end(), ", ")),
         checkpoint.hole().empty() ? "" : "; its entry may be lost: " + checkpoint.hole());
  }
  if (!t->dtype)
    fail(Fault::bad_file, "{}: tensor {} has type {}, which no weight can have",
         checkpoint.path_of(*t), t->name, t->type_name);
  if (t->shape != shape)
    fail(Fault::bad_file, "{}: tensor {} has shape {}, the model's description asks for {}",
         checkpoint.path_of(*t), t->name, shape_text(t->shape), shape_text(shape));
  return *t;
}

// "a + b", the largest first.
template <class Key>
std::string by_size(const std::map<Key, uint64_t>& bytes, std::string_view (*name)(Key)) {
  std::vector<std::pair<Key, uint64_t>> order(bytes.begin(), bytes.end());
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [key, size] : order)
    text += (text.empty() ? "" : " + ") + std::string(name(key));
  return text;
}

bool ends_with_any(std::string_view name, const std::vector<std::string>& endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](const std::string& e) { return name.ends_with(e); });
}

// "layers.*.up.weight" of "layers.12.up.weight".
std::string without_numbers(std::string_view name) {
  std::string pattern;
  for (const char c : name)
    if (c < '0' || c > '9')
      pattern += c;
    else if (!pattern.ends_with('*'))
      pattern += '*';
  return pattern;
}

// A tensor with the name of one that is used, but for its number, is of a layer that the model is
// to have and the description leaves out; others do no harm.
void check_unused(const Checkpoint& checkpoint, const WeightSources& sources, int32_t layers) {
  std::unordered_set<std::string_view> known;
  std::unordered_set<std::string> patterns;
  const auto add = [&](const TensorSource& source) {
    known.insert(source.names.begin(), source.names.end());
    for (const std::string& name : source.names) patterns.insert(without_numbers(name));
  };
  for (const MatrixSource& m : sources.matrices) add(m);
  for (const VectorSource& v : sources.vectors) add(v);
  size_t unused = 0;
  const StoredTensor* first = nullptr;
  for (const StoredTensor& t : checkpoint.tensors()) {
    if (known.count(t.name) != 0 || ends_with_any(t.name, sources.ignored)) continue;
    if (patterns.count(without_numbers(t.name)) != 0)
      fail(Fault::bad_file,
           "{}: tensor {} is of a layer beyond the {} that the model's description tells of",
           checkpoint.path_of(t), printable(t.name), layers);
    if (!first) first = &t;
    unused++;
  }
  if (first)
    log::warning("{}: tensors that the model has no use for: {}, the first is {}",
                 checkpoint.path_of(*first), unused, printable(first->name));
}

bool same_values(const Checkpoint& checkpoint, const StoredTensor& a, const StoredTensor& b) {
  if (a.dtype != b.dtype || a.shape != b.shape || !a.dtype) return false;
  constexpr int64_t kBlockBytes = int64_t{1} << 20;
  const int64_t row = row_bytes(*a.dtype, a.columns),
                step = std::max(int64_t{1}, kBlockBytes / std::max(int64_t{1}, row));
  std::vector<std::byte> ours(size_t(step * row)), theirs(ours.size());
  for (int64_t first = 0; first < a.rows; first += step) {
    const int64_t rows = std::min(step, a.rows - first);
    checkpoint.read_rows(a, first, rows, ours.data());
    checkpoint.read_rows(b, first, rows, theirs.data());
    if (!std::equal(ours.begin(), ours.begin() + rows * row, theirs.begin())) return false;
  }
  return true;
}

// A tensor may be there under several names (a tied head); `used` is the first.
void warn_of_other_values(const Checkpoint& checkpoint, const TensorSource& source,
                          const StoredTensor& used) {
  for (const std::string& name : source.names) {
    const StoredTensor* other = checkpoint.find(name);
    if (other && other != &used && !same_values(checkpoint, used, *other))
      log::warning(
          "{}: tensor {} differs from {}, which the model's description makes one with it, and is "
          "not used",
          checkpoint.path_of(*other), other->name, used.name);
  }
}

}  // namespace

WeightPlan plan_weights(const Checkpoint& checkpoint, const ModelSpec& spec,
                        const WeightSources& sources, const Ops& ops, bool exact_f32) {
  WeightPlan plan;
  Arena arena;
  std::unordered_set<const StoredTensor*> used;
  std::map<DType, uint64_t> formats;
  std::map<Activations, uint64_t> activations;

  for (const MatrixSource& source : sources.matrices) {
    ensure(source.stage >= 0 && source.stage < spec.stages(), "a matrix of stage {}", source.stage);
    const StoredTensor& t = find_source(checkpoint, source, {source.tensor_rows, source.k});
    if (used.insert(&t).second) warn_of_other_values(checkpoint, source, t);
    MatrixPlan& m = plan.matrices.emplace_back();
    m.tensor = &t;
    m.source = source;
    m.weight.format = *t.dtype;
    m.weight.activations = exact_f32 ? Activations::f32 : ops.activations(*t.dtype);
    m.weight.n = source.n;
    m.weight.k = source.k;
    m.weight.panel_bytes = ops.panel_bytes(*t.dtype, source.k);
    const size_t bytes = m.weight.panel_bytes * size_t(ceil_div(source.n, kPanelRows));
    m.offset = arena.used();
    arena.take_bytes(bytes);
    formats[*t.dtype] += bytes;
    // A table that is only looked up in is no product; a tied one is the head's weight too.
    const bool looked_up =
        source.role == Matrix::places || (source.role == Matrix::tokens && !spec.tied_head);
    if (!looked_up) activations[m.weight.activations] += bytes;
  }

  std::map<std::pair<int, Vector>, size_t> placed;  // vectors that have their memory
  for (const VectorSource& source : sources.vectors) {
    VectorPlan& v = plan.vectors.emplace_back();
    v.source = source;
    if (!source.names.empty()) {
      v.tensor = &find_source(checkpoint, source, {source.tensor_size});
      if (is_quantised(*v.tensor->dtype))
        fail(Fault::bad_file, "{}: tensor {} has type {}, vectors may be f32, f16 or bf16",
             checkpoint.path_of(*v.tensor), v.tensor->name, v.tensor->type_name);
      if (used.insert(v.tensor).second) warn_of_other_values(checkpoint, source, *v.tensor);
    }
    const auto [at, fresh] = placed.emplace(std::pair(source.stage, source.role), arena.used());
    if (fresh) arena.take_bytes(size_t(source.vector_size) * sizeof(float));
    v.offset = at->second;
  }

  if (!checkpoint.hole().empty()) fail(Fault::bad_file, "{}", checkpoint.hole());
  plan.bytes = arena.used();
  for (const StoredTensor* t : used) {
    plan.stored_bytes += t->bytes;
    plan.parameters += t->rows * t->columns;
  }
  plan.formats = by_size<DType>(formats, name);
  plan.activations = by_size<Activations>(activations, name_of);
  check_unused(checkpoint, sources, spec.layers);
  return plan;
}

}  // namespace hydrant
