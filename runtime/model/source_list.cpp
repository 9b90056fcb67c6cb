#include "runtime/model/source_list.hpp"

#include <array>
#include <utility>

namespace hydrant {

SourceList::SourceList(std::vector<std::string> prefixes, std::vector<std::string> ignored)
    : prefixes_(std::move(prefixes)) {
  sources_.ignored = std::move(ignored);
}

void SourceList::enter(int stage, std::string folder) {
  stage_ = stage;
  folder_ = std::move(folder);
}

std::vector<std::string> SourceList::spellings(std::string_view name) const {
  std::vector<std::string> names;
  for (const std::string& prefix : prefixes_) names.push_back(prefix + folder_ + std::string(name));
  return names;
}

MatrixSource& SourceList::matrix(Matrix role, std::string_view name, int64_t n, int64_t k) {
  MatrixSource& m = sources_.matrices.emplace_back();
  m.stage = stage_;
  m.names = spellings(name);
  m.role = role;
  m.n = m.tensor_rows = n;
  m.k = k;
  return m;
}

VectorSource& SourceList::vector(Vector role, std::string_view name, int64_t size) {
  VectorSource& v = sources_.vectors.emplace_back();
  v.stage = stage_;
  v.names = spellings(name);
  v.role = role;
  v.size = v.vector_size = v.tensor_size = size;
  return v;
}

void SourceList::norm(const BlockSpec& block, Vector gain, Vector bias, std::string_view name,
                      int64_t size) {
  const std::string base(name);
  VectorSource& g = vector(gain, base + ".weight", size);
  if (!block.norm_affine)
    g.names.clear();
  else if (block.norm == NormKind::layer)
    vector(bias, base + ".bias", size);
}

void SourceList::qkv(const ModelSpec& spec, const Projection (&parts)[3], int64_t fused) {
  constexpr std::array<Matrix, 3> kRoles{Matrix::q, Matrix::k, Matrix::v};
  const BlockSpec& b = spec.block;
  int64_t begin = 0;
  for (size_t i = 0; i < kRoles.size(); i++) {
    const std::string base(parts[i].name);
    const int64_t n = int64_t{i == 0 ? b.heads : b.kv_heads} * b.head_dim;
    MatrixSource& m = matrix(kRoles[i], base + ".weight", n, spec.hidden);
    m.order = parts[i].order;
    if (fused != 0) m.tensor_rows = fused;
    if (b.qkv_bias) {
      VectorSource& v = vector(Vector::qkv_bias, base + ".bias", n);
      v.order = parts[i].order;
      v.begin = begin;
      v.vector_size = spec.qkv_width();
      if (fused != 0) v.tensor_size = fused;
    }
    begin += n;
  }
}

void SourceList::embedding(const ModelSpec& spec, std::string_view tokens, std::string_view head) {
  enter(0);
  MatrixSource& table =
      matrix(Matrix::tokens, std::string(tokens) + ".weight", spec.vocab, spec.embedding);
  if (spec.tied_head) table.names.push_back(std::string(head) + ".weight");
}

void SourceList::head(const ModelSpec& spec, std::string_view final_norm, std::string_view head) {
  enter(1 + spec.layers);
  if (spec.final_norm)
    norm(spec.block, Vector::final_gain, Vector::final_bias, final_norm, spec.hidden);
  if (!spec.tied_head)
    matrix(Matrix::head, "", spec.vocab, spec.embedding).names = {std::string(head) + ".weight"};
}

}  // namespace hydrant
