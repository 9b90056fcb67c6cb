#include "test/offload/file_model.hpp"

#include <cmath>
#include <cstring>
#include <set>

#include "models/registry.hpp"
#include "runtime/base/half.hpp"
#include "runtime/model/gguf.hpp"
#include "test/support/checkpoint_writer.hpp"
#include "test/support/random.hpp"

namespace hydrant::test {
namespace {

// The sizes of the tiny models, widened until rows are whole blocks.
ModelSpec spec_of(const ModelChoice& choice) {
  ModelSpec spec = tiny_model(choice.kind, 1).spec;
  spec.family = choice.kind.starts_with("opt")    ? "opt"
                : choice.kind.starts_with("neox") ? "gpt_neox"
                                                  : "llama";
  if (choice.tied) spec.tied_head = true;
  if (choice.vocab > 0) spec.vocab = choice.vocab;
  const auto block = int32_t(block_elements(choice.format));
  if (block == 1) return spec;
  spec.block.ffn = std::max(64, block);
  if (spec.embedding != spec.hidden) spec.embedding = std::max(64, block);
  if (block <= 32) return spec;
  if (spec.embedding == spec.hidden) spec.embedding = block;
  spec.hidden = block;
  spec.block.head_dim = block / spec.block.heads;
  return spec;
}

// Random codes; scales such that values are about sqrt(3 / k).
std::string row_of_blocks(DType format, int64_t k, Random& random) {
  struct Scales {
    size_t at;
    float scale, minimum;
  };
  const Scales s = format == DType::q8_0   ? Scales{0, 0.0024f, 0}
                   : format == DType::q4_0 ? Scales{0, 0.04f, 0}
                   : format == DType::q4_1 ? Scales{0, 0.04f, -0.3f}
                   : format == DType::q4_k ? Scales{0, 0.0003f, 0.003f}
                                           : Scales{208, 0.0001f, 0};
  std::string row(size_t(row_bytes(format, k)), '\0');
  for (char& c : row) c = char(random.bits());
  for (size_t at = s.at; at < row.size(); at += size_t(block_bytes(format))) {
    const uint16_t scale = f32_to_f16(s.scale), minimum = f32_to_f16(s.minimum);
    std::memcpy(row.data() + at, &scale, 2);
    if (s.minimum != 0) std::memcpy(row.data() + at + 2, &minimum, 2);
  }
  return row;
}

std::string random_row(DType format, int64_t k, Random& random) {
  if (is_quantised(format)) return row_of_blocks(format, k, random);
  const float limit = std::sqrt(3.0f / float(k));
  const std::vector<float> values = random.floats(k, -limit, limit);
  if (format == DType::f32) return bytes_of(values);
  std::vector<uint16_t> halves;
  for (const float v : values)
    halves.push_back(format == DType::f16 ? f32_to_f16(v) : f32_to_bf16(v));
  return bytes_of(halves);
}

std::string file_of(const WeightSources& sources, DType format) {
  Random random(17);
  GgufWriter writer;
  std::set<std::string> written;  // several matrices may be of one tensor
  for (const MatrixSource& m : sources.matrices) {
    if (!written.insert(m.names.front()).second) continue;
    std::string bytes;
    for (int64_t row = 0; row < m.tensor_rows; row++) bytes += random_row(format, m.k, random);
    writer.tensor({m.names.front(), std::string(name(format)), {m.tensor_rows, m.k}, bytes});
  }
  for (const VectorSource& v : sources.vectors) {
    if (v.names.empty() || !written.insert(v.names.front()).second) continue;
    writer.tensor(
        {v.names.front(), "f32", {v.tensor_size}, bytes_of(random.floats(v.tensor_size, -1, 1))});
  }
  return writer.bytes();
}

}  // namespace

FileModel::FileModel(const ModelChoice& choice) : spec(spec_of(choice)) {
  sources = find_family(spec.family == "gpt_neox" && choice.names == FileKind::gguf ? "gptneox"
                                                                                    : spec.family,
                        choice.names, "a test")
                .sources(spec, choice.names);
  path = folder.write("model.gguf", file_of(sources, choice.format));
  std::vector<File> files;
  files.emplace_back(path);
  GgufHeader head = read_gguf_header(files.front());
  checkpoint = Checkpoint(std::move(files), std::move(head.tensors));
}

std::vector<Request> mixed_job(const ModelSpec& spec, int rows, int32_t max_new_tokens) {
  const NaivePolicy policies[] = {
      {policy::Id::full, {}},          {policy::Id::h2o, {0, 5, 4}},
      {policy::Id::sinks, {2, 0, 7}},  {policy::Id::tova, {0, 9, 1}},
      {policy::Id::local, {0, 0, 11}}, {policy::Id::h2o_promote, {0, 6, 5}}};
  Random random(7);
  std::vector<Request> job;
  for (int i = 0; i < rows; i++) {
    std::vector<int32_t> prompt(size_t(1 + random.below(40)));
    for (int32_t& id : prompt) id = int32_t(random.below(spec.vocab));
    job.push_back(
        request_of(spec, prompt, max_new_tokens, policies[size_t(i) % std::size(policies)]));
    job.back().report_kept = true;
  }
  return job;
}

std::vector<Completion> run_with(Device& device, const FileModel& model, WeightFeed& feed,
                                 const std::vector<Request>& rows, const BatchShape& shape) {
  return run_all(Generator(device, model.spec, feed, shape, DType::f32), rows);
}

std::vector<Completion> run_resident(Device& device, const FileModel& model, bool exact,
                                     const std::vector<Request>& rows) {
  const WeightPlan plan = model.plan(device.ops(), exact);
  const ModelWeights weights = load_weights(model.checkpoint, model.spec, plan, device);
  ResidentWeights feed(device.ops(), weights);
  return run_with(device, model, feed, rows, {int32_t(rows.size()), 1, 256, 8192});
}

}  // namespace hydrant::test
