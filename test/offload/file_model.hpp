// Small models of every family in every weight format, in files: offloading reads them again and
// again.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/model/family.hpp"
#include "runtime/model/weight_plan.hpp"
#include "test/end_to_end/run_job.hpp"
#include "test/support/temporary_folder.hpp"

namespace hydrant::test {

struct ModelChoice {
  std::string kind;  // of test/end_to_end/tiny_model.hpp
  DType format = DType::f32;
  FileKind names = FileKind::hugging_face;  // whose names and orders of rows
  bool tied = false;
  int32_t vocab = 0;  // if not that of the tiny model
};

struct FileModel {
  explicit FileModel(const ModelChoice& choice);
  WeightPlan plan(const Ops& ops, bool exact = true) const {
    return plan_weights(checkpoint, spec, sources, ops, exact);
  }

  TemporaryFolder folder;
  std::string path;
  ModelSpec spec;
  WeightSources sources;
  Checkpoint checkpoint;
};

// Rows of different lengths; six have every policy.
std::vector<Request> mixed_job(const ModelSpec& spec, int rows, int32_t max_new_tokens);

std::vector<Completion> run_with(Device& device, const FileModel& model, WeightFeed& feed,
                                 const std::vector<Request>& rows, const BatchShape& shape);
std::vector<Completion> run_resident(Device& device, const FileModel& model, bool exact,
                                     const std::vector<Request>& rows);

}  // namespace hydrant::test
