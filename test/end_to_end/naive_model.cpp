#include "test/end_to_end/naive_model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hydrant::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double activate(Activation kind, double x) {
  switch (kind) {
    case Activation::none:
      return x;
    case Activation::relu:
      return std::max(x, 0.0);
    case Activation::silu:
      return x / (1 + std::exp(-x));
    case Activation::gelu:
      return x * (1 + std::erf(x / std::sqrt(2.0))) / 2;
    case Activation::gelu_tanh:
      return x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))) / 2;
  }
  return x;
}

void add(std::vector<std::vector<double>>& x, const std::vector<std::vector<double>>& y) {
  for (size_t t = 0; t < x.size(); t++)
    for (size_t i = 0; i < x[t].size(); i++) x[t][i] += y[t][i];
}

}  // namespace

NaiveSequence::NaiveSequence(const TinyModel& model, const NaivePolicy& policy)
    : model_(model),
      policy_(policy),
      heads_(size_t(model.spec.layers), std::vector<Head>(size_t(model.spec.block.kv_heads))) {}

bool NaiveSequence::has(int stage, Matrix role) const {
  return model_.stages[size_t(stage)].matrices.contains(role);
}

NaiveSequence::Rows NaiveSequence::linear(const Rows& x, int stage, Matrix role,
                                          Vector bias) const {
  const TinyStage& s = model_.stages[size_t(stage)];
  const TinyMatrix& m = s.matrices.at(role);
  // q, k and v share one vector of biases.
  const auto k_width = size_t(model_.spec.block.kv_heads * model_.spec.block.head_dim);
  const auto q_width = size_t(model_.spec.block.heads * model_.spec.block.head_dim);
  const size_t begin = role == Matrix::k ? q_width : role == Matrix::v ? q_width + k_width : 0;
  Rows y(x.size(), std::vector<double>(size_t(m.n)));
  for (size_t t = 0; t < x.size(); t++)
    for (size_t i = 0; i < size_t(m.n); i++) {
      double sum = s.vectors.contains(bias) ? double(s.vectors.at(bias)[begin + i]) : 0;
      for (size_t j = 0; j < size_t(m.k); j++)
        sum += double(m.values[i * size_t(m.k) + j]) * x[t][j];
      y[t][i] = sum;
    }
  return y;
}

NaiveSequence::Rows NaiveSequence::norm(const Rows& x, int stage, Vector gain, Vector bias) const {
  const TinyStage& s = model_.stages[size_t(stage)];
  const BlockSpec& block = model_.spec.block;
  const std::vector<float>& g = s.vectors.at(gain);
  Rows y = x;
  for (std::vector<double>& row : y) {
    double mean = 0, square = 0;
    if (block.norm == NormKind::layer)
      for (const double v : row) mean += v / double(row.size());
    for (double& v : row) v -= mean;
    for (const double v : row) square += v * v / double(row.size());
    for (size_t i = 0; i < row.size(); i++) {
      row[i] = row[i] / std::sqrt(square + double(block.norm_epsilon)) * double(g[i]);
      if (block.norm == NormKind::layer) row[i] += double(s.vectors.at(bias)[i]);
    }
  }
  return y;
}

void NaiveSequence::rotate(std::vector<double>& x, int32_t place) const {
  const std::vector<double>& frequency = model_.spec.block.rotary.inverse_frequency;
  const size_t half = frequency.size();
  for (size_t i = 0; i < half; i++) {
    const double a = x[i], b = x[i + half], angle = place * frequency[i];
    x[i] = a * std::cos(angle) - b * std::sin(angle);
    x[i + half] = b * std::cos(angle) + a * std::sin(angle);
  }
}

void NaiveSequence::evict(Head& slots, bool prefill) {
  if (policy_.id == policy::Id::full) return;
  const policy::SlotLayout& budget = policy_.budget;
  double gap = kInfinity;  // of the last victim: the others of a prompt leave in any order
  while (slots.size() > size_t(budget.capacity())) {
    auto first = slots.begin();
    while (first != slots.end() && first->position < budget.sinks) ++first;
    auto last = std::max(first, slots.end() - budget.recent);
    const bool promotes = policy_.id == policy::Id::h2o_promote && !prefill;
    if (promotes && last - first > 1) --last;
    const auto victim = std::min_element(
        first, last, [](const Slot& a, const Slot& b) { return a.score < b.score; });
    gap = kInfinity;
    for (auto other = first; budget.heavy > 0 && other != last; ++other)
      if (other != victim) gap = std::min(gap, other->score - victim->score);
    slots.erase(victim);
  }
  gap_ = std::min(gap_, gap);
}

void NaiveSequence::attend_head(Head& slots, size_t head, const Rows& q, Rows& out) {
  const BlockSpec& block = model_.spec.block;
  const auto dim = size_t(block.head_dim), group = size_t(block.heads / block.kv_heads);
  const size_t tokens = q.size();
  const bool by_rank = policy_.positions == policy::Positions::cache;
  std::vector<std::vector<double>> keys;
  for (size_t j = 0; j < slots.size(); j++) {
    keys.push_back(slots[j].key);
    rotate(keys.back(), by_rank ? int32_t(j) : slots[j].position);
  }
  if (policy_.id == policy::Id::tova)
    for (Slot& s : slots) s.score = 0;
  for (size_t t = 0; t < tokens; t++) {
    const size_t own = slots.size() - tokens + t;  // the query's slot
    for (size_t h = head * group; h < (head + 1) * group; h++) {
      std::vector<double> query(q[t].begin() + std::ptrdiff_t(h * dim),
                                q[t].begin() + std::ptrdiff_t((h + 1) * dim));
      rotate(query, by_rank ? int32_t(own) : slots[own].position);
      std::vector<double> p(own + 1);
      double top = -kInfinity, sum = 0;
      for (size_t j = 0; j <= own; j++) {
        for (size_t i = 0; i < dim; i++) p[j] += query[i] * keys[j][i] / std::sqrt(double(dim));
        top = std::max(top, p[j]);
      }
      for (double& v : p) sum += v = std::exp(v - top);
      for (size_t j = 0; j <= own; j++) {
        if (policy_.id != policy::Id::tova || t + 1 == tokens) slots[j].score += p[j] / sum;
        for (size_t i = 0; i < dim; i++) out[t][h * dim + i] += p[j] / sum * slots[j].value[i];
      }
    }
  }
  evict(slots, /*prefill=*/length_ == 0);
}

NaiveSequence::Rows NaiveSequence::attend(const Rows& x, int layer) {
  const BlockSpec& block = model_.spec.block;
  const int stage = layer + 1;
  const Rows q = linear(x, stage, Matrix::q, Vector::qkv_bias);
  const Rows k = linear(x, stage, Matrix::k, Vector::qkv_bias);
  const Rows v = linear(x, stage, Matrix::v, Vector::qkv_bias);
  Rows out(x.size(), std::vector<double>(size_t(block.heads * block.head_dim)));
  const auto dim = std::ptrdiff_t(block.head_dim);
  for (size_t head = 0; head < size_t(block.kv_heads); head++) {
    Head& slots = heads_[size_t(layer)][head];
    const std::ptrdiff_t begin = std::ptrdiff_t(head) * dim;
    for (size_t t = 0; t < x.size(); t++)
      slots.push_back({{k[t].begin() + begin, k[t].begin() + begin + dim},
                       {v[t].begin() + begin, v[t].begin() + begin + dim},
                       length_ + int32_t(t),
                       0});
    attend_head(slots, head, q, out);
  }
  return linear(out, stage, Matrix::out, Vector::out_bias);
}

NaiveSequence::Rows NaiveSequence::feed_forward(const Rows& x, int stage) const {
  const BlockSpec& block = model_.spec.block;
  Rows up = linear(x, stage, Matrix::up, Vector::up_bias);
  if (block.gated) {
    const Rows gate = linear(x, stage, Matrix::gate, Vector::count);
    for (size_t t = 0; t < up.size(); t++)
      for (size_t i = 0; i < up[t].size(); i++) up[t][i] *= activate(block.activation, gate[t][i]);
  } else {
    for (std::vector<double>& row : up)
      for (double& v : row) v = activate(block.activation, v);
  }
  return linear(up, stage, Matrix::down, Vector::down_bias);
}

std::vector<double> NaiveSequence::forward(std::span<const int32_t> ids) {
  const ModelSpec& spec = model_.spec;
  gap_ = kInfinity;
  const TinyMatrix& table = model_.stages[0].matrices.at(Matrix::tokens);
  Rows x;
  for (const int32_t id : ids)
    x.emplace_back(table.values.begin() + id * table.k, table.values.begin() + (id + 1) * table.k);
  if (has(0, Matrix::project_in)) x = linear(x, 0, Matrix::project_in, Vector::count);
  if (spec.learned_places) {
    const TinyMatrix& places = model_.stages[0].matrices.at(Matrix::places);
    for (size_t t = 0; t < x.size(); t++)
      for (size_t i = 0; i < x[t].size(); i++)
        x[t][i] +=
            double(places.values[(size_t(length_ + spec.place_offset) + t) * size_t(places.k) + i]);
  }
  for (int layer = 0; layer < spec.layers; layer++) {
    const int stage = layer + 1;
    const auto norm1 = [&](const Rows& y) {
      return norm(y, stage, Vector::norm1_gain, Vector::norm1_bias);
    };
    const auto norm2 = [&](const Rows& y) {
      return norm(y, stage, Vector::norm2_gain, Vector::norm2_bias);
    };
    switch (spec.block.order) {
      case BlockOrder::pre_norm:
        add(x, attend(norm1(x), layer));
        add(x, feed_forward(norm2(x), stage));
        break;
      case BlockOrder::post_norm:
        add(x, attend(x, layer));
        x = norm1(x);
        add(x, feed_forward(x, stage));
        x = norm2(x);
        break;
      case BlockOrder::parallel: {
        const Rows mlp = feed_forward(norm2(x), stage);
        add(x, attend(norm1(x), layer));
        add(x, mlp);
        break;
      }
    }
  }
  length_ += int32_t(ids.size());
  x = {x.back()};
  const int head = spec.layers + 1;
  if (spec.final_norm) x = norm(x, head, Vector::final_gain, Vector::final_bias);
  if (has(head, Matrix::project_out)) x = linear(x, head, Matrix::project_out, Vector::count);
  return linear(x, head, Matrix::head, Vector::count)[0];
}

std::vector<std::vector<std::vector<int32_t>>> NaiveSequence::kept() const {
  std::vector<std::vector<std::vector<int32_t>>> all;
  for (const std::vector<Head>& layer : heads_) {
    auto& heads = all.emplace_back();
    for (const Head& slots : layer) {
      auto& positions = heads.emplace_back();
      for (const Slot& s : slots) positions.push_back(s.position);
    }
  }
  return all;
}

}  // namespace hydrant::test
