#include "offload/cost_model.hpp"

#include <algorithm>
#include <array>
#include <tuple>

#include "offload/disk_panels.hpp"
#include "runtime/base/aligned.hpp"

namespace hydrant {
namespace {

// Side by side with another in one product.
bool joins(const MatrixPlace& m, const BlockSpec& block) {
  return m.role == Matrix::k || m.role == Matrix::v || (m.role == Matrix::up && block.gated);
}

// The seconds that a read takes in a steady run of `lanes`, each of which reads, then packs: a
// closed network of one station, the disk, and as many customers, who come back after packing. By
// mean value analysis (Reiser, Lavenberg 1980), as neither takes the same time twice: one more
// lane finds as many reads under way as all others have on average.
double read_seconds(const DiskRates& disk, double requests, double bytes, double pack, int lanes) {
  double under_way = 0, seconds = 0;
  for (int n = 1; n <= lanes; n++) {
    const double waits = (1 + under_way) * disk.seconds(requests, bytes, 1 + under_way);
    seconds = (waits + pack) / n;
    under_way = seconds > 0 ? waits / seconds : 0;
  }
  return seconds;
}

}  // namespace

const char* LaneSeconds::bound() const {
  const std::array<std::pair<const char*, double>, 9> lanes{{{"compute", compute()},
                                                             {"link", link},
                                                             {"link down", link_down},
                                                             {"link both ways", link_both},
                                                             {"disk", disk},
                                                             {"cache disk", cache_disk},
                                                             {"both disks", disk + cache_disk},
                                                             {"cores", cores},
                                                             {"memory bus", bus}}};
  return std::max_element(lanes.begin(), lanes.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

LaneSeconds& LaneSeconds::operator+=(const LaneSeconds& o) {
  for (const auto member : {&LaneSeconds::products, &LaneSeconds::attention, &LaneSeconds::scoring,
                            &LaneSeconds::operations, &LaneSeconds::link, &LaneSeconds::link_down,
                            &LaneSeconds::link_both, &LaneSeconds::disk, &LaneSeconds::cache_disk,
                            &LaneSeconds::look_up, &LaneSeconds::cores, &LaneSeconds::bus,
                            &LaneSeconds::waiting, &LaneSeconds::seconds})
    this->*member += o.*member;
  return *this;
}

LaneSeconds LaneSeconds::times(double f) const {
  return {products * f,  attention * f, scoring * f, operations * f, link * f,
          link_down * f, link_both * f, disk * f,    cache_disk * f, look_up * f,
          cores * f,     bus * f,       waiting * f, seconds * f};
}

CostModel::CostModel(const MachineRates& rates, const CostSetup& setup)
    : rates_(rates), setup_(setup) {
  const WeightOffload& o = setup.weight_options;
  const double copy = rates.copy.at(1);
  std::tuple<double, double, double> like;  // requests, bytes and packing of a read
  double seconds = 0;                       // of it
  for (const StageLayout& layout : setup.weights->stages) {
    Stage& stage = stages_.emplace_back();
    stage.moves = layout.slot_bytes > 0;
    stage.reads = int64_t(layout.disk.size());
    moving_stages_ += stage.moves;
    const auto moved = double(layout.host_bytes + layout.disk_bytes);
    stage.link = link_seconds(&BusRates::up, moved, moved);
    const int lanes = o.overlap ? o.disk_lanes : 1;
    for (const DiskRead& read : layout.disk) {
      double pack = 0;
      for (const DiskRun& d : read.runs)
        pack += double(d.run.bytes()) * rates.pack_byte(d.run.matrix->weight.format);
      const auto requests = double(read.requests), bytes = double(read.file_bytes);
      // Most of the tens of thousands that a large model has are like the one before.
      if (std::tuple now(requests, bytes, pack); now != like) {
        like = now;
        seconds = read_seconds(rates.file_read, requests, bytes, pack, lanes);
      }
      stage.disk += seconds;
      weight_cpu_ += pack;
      weight_reads_ += requests;
    }
    weight_cpu_ += moved / copy;
    // A copy reads and writes; packing before it does the same, and the disk writes what it reads.
    weight_bytes_moved_ += 2 * moved + 3 * double(layout.disk_bytes);
    weight_link_ += stage.link;
    weight_disk_ += stage.disk;
    for (const MatrixPlace& m : layout.matrices)
      panel_bytes_ +=
          double(m.plan->weight.panel_bytes) * double(ceil_div(m.plan->weight.n, kPanelRows));
  }
  pass(1);  // says what the rates lack
}

int64_t CostModel::overlap(int64_t first, int64_t count, int64_t begin, int64_t end) {
  return std::max<int64_t>(0, std::min(first + count, end) - std::max(first, begin));
}

int64_t CostModel::block_elements(const ModelSpec& spec) {
  const BlockSpec& b = spec.block;
  return 2 * int64_t{spec.hidden} + spec.qkv_width() + (b.gated ? 3 : 1) * int64_t{b.ffn};
}

double CostModel::link_seconds(Way way, double bytes, double piece) const {
  const BusRates& bus = rates_.bus;
  const double rate = bus.measured() ? (bus.*way).at(piece) : rates_.copy.at(1),
               link = setup_.weight_options.link;
  return bytes / (link > 0 ? std::min(rate, link) : rate);
}

// Each way goes on at what is left to it while the other is busy, and the longer one then alone.
double CostModel::both_seconds(const LaneSeconds& l, double piece) const {
  const BusRates& bus = rates_.bus;
  if (!bus.measured() || l.link == 0 || l.link_down == 0) return 0;
  const double up = l.link * std::max(1.0, bus.up.at(piece) / bus.up_shared.at(piece)),
               down = l.link_down * std::max(1.0, bus.down.at(piece) / bus.down_shared.at(piece));
  return up < down ? up + l.link_down * (1 - up / down) : down + l.link * (1 - down / up);
}

const CostModel::Pass& CostModel::pass(int64_t rows) const {
  if (const auto known = passes_.find(rows); known != passes_.end()) return known->second;
  const ModelSpec& spec = *setup_.spec;
  const BlockSpec& block = spec.block;
  const auto t = double(rows);
  Pass p;
  for (const StageLayout& layout : setup_.weights->stages) {
    double products = 0;
    for (const MatrixPlace& m : layout.matrices) {
      const Weight& w = m.plan->weight;
      const ProductRate& rate = rates_.product(w.format, w.activations);
      products += double(w.n) * double(w.k) * rate.weight.at(t);
      if (!joins(m, block)) products += rate.call.at(t * double(w.k));
    }
    p.products.push_back(products);
    const size_t stage = p.products.size() - 1;
    double operations = 0;
    if (stage > size_t(spec.layers))
      operations = rates_.logits.call + rates_.logits.element * t * double(spec.vocab);
    else if (stage > 0)
      operations = rates_.block.at(t * double(block_elements(spec)));
    p.operations.push_back(operations);
  }
  return passes_.emplace(rows, std::move(p)).first->second;
}

// Each group passes through all stages.
void CostModel::add_decode(Compute& sum, const Load& load, const Workload& work) const {
  const BlockSpec& block = setup_.spec->block;
  const AttentionRate& attention = rates_.attention_of(setup_.kv_dtype);
  const double queries = double(block.heads) / double(block.kv_heads),
               decode = attention.decode.at(queries), scored = attention.scored.at(queries);
  for (int32_t g = 0; g < setup_.groups; g++) {
    const int64_t begin = int64_t{g} * setup_.rows_per_group, end = begin + setup_.rows_per_group;
    int64_t rows = 0;
    for (const Decoding& d : load.decode) rows += overlap(d.first, d.count, begin, end);
    if (rows == 0) continue;
    const Pass& p = pass(rows);
    for (size_t s = 0; s < p.products.size(); s++) {
      sum.lanes.products += p.products[s];
      sum.lanes.operations += p.operations[s];
      sum.stages[s] += p.products[s] + p.operations[s];
    }
    sum.bytes += panel_bytes_;
  }
  for (size_t layer = 0; layer < work.plans.size(); layer++) {
    const policy::RowPlan& plan = work.plans[layer];
    double components = 0;
    for (const Decoding& d : load.decode)
      components += double(d.count) * double(plan.slots.live_rows(d.position));
    components *= double(block.kv_heads) * double(block.head_dim);
    const double read = components * decode, score = plan.scored ? components * scored : 0;
    sum.lanes.attention += read;
    sum.lanes.scoring += score;
    sum.stages[layer + 1] += read + score;
    sum.bytes += 2 * components * double(row_bytes(setup_.kv_dtype, 1));
  }
}

// Returns the seconds of it.
double CostModel::add_prompts(Compute& sum, const Load& load, const Workload& work) const {
  const int64_t prompts = load.prompts.count, tokens = prompts * load.prompts.position;
  if (prompts == 0) return 0;
  const BlockSpec& block = setup_.spec->block;
  const AttentionRate& attention = rates_.attention_of(setup_.kv_dtype);
  const int64_t chunk = setup_.prefill_chunk, pieces = tokens / chunk, rest = tokens % chunk;
  const size_t head = stages_.size() - 1;
  double seconds = 0;
  const auto add = [&](const Pass& p, double times, size_t first, size_t last) {
    for (size_t s = first; s < last; s++) {
      sum.lanes.products += times * p.products[s];
      sum.lanes.operations += times * p.operations[s];
      sum.stages[s] += times * (p.products[s] + p.operations[s]);
      seconds += times * (p.products[s] + p.operations[s]);
    }
  };
  if (pieces > 0) add(pass(chunk), double(pieces), 0, head);
  if (rest > 0) add(pass(rest), 1, 0, head);
  sum.bytes += panel_bytes_ * double(pieces + (rest > 0));
  // The last rows of a group's prompts.
  const int64_t outputs = std::min<int64_t>(prompts, setup_.rows_per_group);
  add(pass(outputs), double(prompts) / double(outputs), head, head + 1);
  const double length = load.prompts.position,
               pairs = double(prompts) * double(block.heads) * length * (length + 1) / 2;
  for (size_t layer = 0; layer < work.plans.size(); layer++) {
    const double attend = pairs * attention.prompt.at(block.head_dim),
                 columns =
                     work.plans[layer].scored ? pairs * attention.columns.at(block.head_dim) : 0;
    sum.lanes.attention += attend;
    sum.lanes.scoring += columns;
    sum.stages[layer + 1] += attend + columns;
    seconds += attend + columns;
  }
  return seconds;
}

// Rows of a group with the same home move alike, so one of them is asked for.
CacheMoves CostModel::moves(const Load& load, const Workload& work) const {
  CacheMoves sum;
  if (!setup_.caches) return sum;
  const auto add = [&](const CacheMoves& one, int64_t count) {
    const auto n = uint64_t(count);
    sum += {n * one.to_device, n * one.to_host, n * one.read, n * one.written};
  };
  const auto each = [&](const Decoding& d, const auto& visit) {
    for (int32_t g = 0; g < setup_.groups; g++) {
      const RowHomes& h = setup_.caches->homes(g);
      const int64_t begin = int64_t{g} * setup_.rows_per_group;
      const std::array<int64_t, 3> borders{h.device, h.first_on_disk(), setup_.rows_per_group};
      for (size_t b = 0; b + 1 < borders.size(); b++)
        if (const int64_t n = overlap(d.first, d.count, begin + borders[b], begin + borders[b + 1]);
            n > 0)
          visit(g, int32_t(borders[b]), n);
    }
  };
  for (size_t layer = 0; layer < work.plans.size(); layer++) {
    const policy::SlotLayout& slots = work.plans[layer].slots;
    const auto l = int32_t(layer);
    for (const Decoding& d : load.decode)
      each(d, [&](int32_t g, int32_t place, int64_t n) {
        add(setup_.caches->decode_moves(l, g, place, d.position, slots), n);
      });
    each(load.prompts, [&](int32_t g, int32_t place, int64_t n) {
      add(setup_.caches->prompt_moves(l, g, place, load.prompts.position, slots), n);
    });
  }
  return sum;
}

// Each way.
double CostModel::hidden_bytes(const Load& load) const {
  if (setup_.hidden.shares.host == 0) return 0;
  std::vector<PieceTokens> pieces;
  int32_t token = 0;
  const auto add = [&](int64_t tokens, int64_t most) {
    for (; tokens > 0; tokens -= most) {
      const auto some = int32_t(std::min(tokens, most));
      pieces.push_back({token, some});
      token += some;
    }
  };
  for (int32_t g = 0; g < setup_.groups; g++) {
    const int64_t begin = int64_t{g} * setup_.rows_per_group, end = begin + setup_.rows_per_group;
    int64_t rows = 0;
    for (const Decoding& d : load.decode) rows += overlap(d.first, d.count, begin, end);
    add(rows, setup_.rows_per_group);
    add(overlap(load.prompts.first, load.prompts.count, begin, end) * load.prompts.position,
        setup_.prefill_chunk);
  }
  const HiddenShape shape{.width = setup_.spec->hidden, .stages = setup_.spec->layers + 1};
  return double(hidden_moves(setup_.hidden, shape, pieces));
}

// A step in a steady run of equal ones. Reads follow each other into buffers as these are free; a
// stage's are copied when they are there, its slot is free and those before it are done; it is
// computed when all are.
double CostModel::pipeline(const std::vector<double>& compute) const {
  constexpr int kSteps = 4;
  constexpr int64_t kParts = 16;  // of a stage: more would tell no more
  const auto slots = size_t(setup_.weight_options.slots);
  const auto buffers = int64_t(DiskPanels::buffers(setup_.weight_options.disk_lanes));
  std::vector<double> freed, copied;  // [use of a slot], [part that is read]
  double filled = 0, read = 0, computed = 0, before = 0;
  for (int step = 0; step < kSteps; step++) {
    before = computed;
    for (size_t s = 0; s < stages_.size(); s++) {
      const Stage& stage = stages_[s];
      if (stage.moves) {
        const int64_t each = std::max<int64_t>(1, ceil_div(stage.reads, kParts)),
                      parts = ceil_div(stage.reads, each);
        const auto ring = size_t(std::max<int64_t>(1, buffers / each));
        if (freed.size() >= slots) filled = std::max(filled, freed[freed.size() - slots]);
        if (parts == 0) filled += stage.link;
        for (int64_t i = 0; i < parts; i++) {
          if (copied.size() >= ring) read = std::max(read, copied[copied.size() - ring]);
          read += stage.disk / double(parts);
          filled = std::max(filled, read) + stage.link / double(parts);
          copied.push_back(filled);
        }
        computed = std::max(computed, filled);
      }
      computed += compute[s];
      if (stage.moves) freed.push_back(computed);
    }
  }
  return computed - before;
}

CostModel::StepCost CostModel::step(const Load& load, const Workload& work) const {
  Compute sum{{}, std::vector<double>(stages_.size()), 0};
  add_decode(sum, load, work);
  const double prompts = add_prompts(sum, load, work);
  LaneSeconds& l = sum.lanes;
  const CacheMoves cache = moves(load, work);
  const double copy = rates_.copy.at(1);
  const double hidden = hidden_bytes(load);
  // Rows of the cache come and go head by head.
  const double piece = setup_.caches ? double(setup_.caches->head_bytes(0)) : hidden;
  l.link = weight_link_ + link_seconds(&BusRates::up, double(cache.to_device) + hidden, piece);
  l.link_down = link_seconds(&BusRates::down, double(cache.to_host) + hidden, piece);
  l.link_both = both_seconds(l, piece);
  l.disk = weight_disk_;
  l.cache_disk = cache_disk(load, work);
  l.look_up = look_up(load);
  sum.stages.front() += l.look_up;
  if (setup_.host_is_device) {
    const double passed = double(cache.to_device + cache.to_host) + 2 * hidden;
    l.cores = (l.compute() * setup_.threads + weight_cpu_ + passed / copy) / rates_.cores;
    const double moved = weight_bytes_moved_ + 2 * passed + double(cache.read + cache.written);
    if (moved > 0) l.bus = (sum.bytes + moved) / rates_.memory;
  }
  const double staged = setup_.weight_options.overlap
                            ? pipeline(sum.stages)
                            : l.compute() + l.look_up + weight_link_ + weight_disk_;
  l.waiting = std::max(0.0, staged - l.compute());
  l.seconds = setup_.weight_options.overlap
                  ? std::max({staged, l.link, l.link_down, l.link_both, l.disk + l.cache_disk,
                              l.cores, l.bus})
                  : staged + l.link - weight_link_ + l.link_down + l.cache_disk;
  return {l, l.compute() > 0 ? prompts / l.compute() : 0};
}

}  // namespace hydrant
