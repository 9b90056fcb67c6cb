#include "runtime/apps/bench_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "runtime/apps/figures.hpp"
#include "runtime/apps/placement_keys.hpp"
#include "runtime/base/json.hpp"

namespace hydrant {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct Spread {
  double median, least, most;
};
Spread spread(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  const double median = n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
  return {median, values.front(), values.back()};
}

// NAME, NAME_min, NAME_max over the repeats; null where there was nothing to measure.
void add_rate(OrderedJson& row, const std::string& name, const BenchResult& result, double tokens,
              const std::function<double(const RunTimes&)>& seconds) {
  std::vector<double> rates;
  for (const RunTimes& run : result.runs)
    if (tokens > 0 && seconds(run) > 0) rates.push_back(tokens / seconds(run));
  const bool any = rates.size() == result.runs.size() && !rates.empty();
  const Spread s = any ? spread(rates) : Spread{};
  row[name] = any ? OrderedJson(s.median) : OrderedJson();
  row[name + "_min"] = any ? OrderedJson(s.least) : OrderedJson();
  row[name + "_max"] = any ? OrderedJson(s.most) : OrderedJson();
}

// Where weights are and what a step moves, predicted beside measured.
void add_traffic(OrderedJson& row, const BenchResult& result, const BenchMachine& machine) {
  const Traffic& t = result.traffic;
  const auto add = [&](const std::string& name, uint64_t measured, uint64_t predicted) {
    const double steps = double(t.steps);
    row[name] = t.steps > 0 ? OrderedJson(double(measured) / steps) : OrderedJson();
    row["predicted_" + name] = t.steps > 0 ? OrderedJson(double(predicted) / steps) : OrderedJson();
  };
  const auto add_homes = [&](const std::string& what, const Shares& homes) {
    row[what + "_on_device"] = homes.device;
    row[what + "_on_host"] = homes.host;
    row[what + "_on_disk"] = homes.disk;
  };
  add_homes("weights", result.weight_homes);
  row["disk_lanes"] = result.disk_lanes > 0 ? OrderedJson(result.disk_lanes) : OrderedJson();
  add("host_bytes_per_step", t.measured.from_host, t.predicted.from_host);
  add("disk_bytes_per_step", t.measured.from_disk, t.predicted.from_disk);
  add("file_bytes_per_step", t.measured.file, t.predicted.file);
  const CacheMoves &moved = t.caches, &said = result.cache_moves.moves;
  add_homes("cache", result.cache_homes);
  add("cache_to_device_bytes_per_step", moved.to_device, said.to_device);
  add("cache_to_host_bytes_per_step", moved.to_host, said.to_host);
  add("cache_read_bytes_per_step", moved.read, said.read);
  row["cache_written_bytes"] = moved.written;  // wear: of all repeats
  row["predicted_cache_written_bytes"] =
      result.cache_moves.all_written ? OrderedJson(said.written) : OrderedJson();
  row["link_bytes_per_second"] = machine.link ? OrderedJson(*machine.link) : OrderedJson();
}

std::string cell(const OrderedJson& value) {
  if (value.is_null()) return "";
  if (!value.is_string()) return value.dump();
  const auto& text = value.get_ref<const std::string&>();
  if (text.find_first_of(",\"\n") == text.npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string rate_cell(const OrderedJson& row, const std::string& name) {
  return row[name].is_null() ? "-" : rate_text(row[name].get<double>());
}

std::string range_cell(const OrderedJson& row, const std::string& name) {
  if (row[name].is_null()) return "-";
  return fmt::format("{} [{}, {}]", rate_cell(row, name), rate_cell(row, name + "_min"),
                     rate_cell(row, name + "_max"));
}

std::string row_text(const OrderedJson& row) {
  const std::string begin = fmt::format(
      "{:<12}{:>6}{:>6}{:>12}", row["policy"].get<std::string>(),
      row["budget_slots"].get<int64_t>(), row["batch"].get<int64_t>(),
      fmt::format("{} + {}", row["prompt_len"].get<int64_t>(), row["output_len"].get<int64_t>()));
  if (!row["fits"].get<bool>())
    return fmt::format("{}  does not fit: {}\n", begin, row["misfit"].get<std::string>());
  const auto bytes = [&](const char* key) { return bytes_text(row[key].get<size_t>()); };
  const bool agreed = !row["agreement"].is_null(), read = !row["bandwidth_share"].is_null();
  return fmt::format(
      "{}{:>9}{:>26}{:>9}{:>11}{:>11}{:>11}{:>13}{:>11}{:>9}{:>8}\n", begin,
      rate_cell(row, "prefill_tokens_per_second"), range_cell(row, "decode_tokens_per_second"),
      rate_cell(row, "total_tokens_per_second"), bytes("kv_bytes"), bytes("peak_bytes"),
      bytes("predicted_peak_bytes"),
      read ? fmt::format("{:.1f} ({:.0f} %)", row["decode_bytes_per_second"].get<double>() / 1e9,
                         100 * row["bandwidth_share"].get<double>())
           : "-",
      agreed ? fmt::format("{:.2f} %", 100 * row["agreement"].get<double>()) : "-",
      agreed ? fmt::format("{:.4f}", row["mean_kl"].get<double>()) : "-",
      agreed ? fmt::format("{}", row["first_difference_median"].get<int64_t>()) : "-");
}

}  // namespace

OrderedJson json_row(const BenchResult& r, const BenchMachine& machine) {
  const BenchCase& c = *r.bench;
  const double rows = c.batch, prompt = c.prompt_len, output = c.output_len;
  const auto prefill = [](const RunTimes& run) { return run.prefill_seconds; };
  const auto decode = [](const RunTimes& run) { return run.decode_seconds; };
  OrderedJson row{{"policy", c.policy},
                  {"budget", c.budget.empty() ? OrderedJson() : OrderedJson(c.budget)},
                  {"budget_slots", c.slots()},
                  {"budget_share_of_prompt", double(c.slots()) / prompt},
                  {"budget_share_of_length", double(c.slots()) / (prompt + output)},
                  {"batch", c.batch},
                  {"prompt_len", c.prompt_len},
                  {"output_len", c.output_len},
                  {"placement", placement_text(c.placement)},
                  {"synthetic", machine.synthetic},
                  {"fits", r.misfit.empty()},
                  {"misfit", r.misfit.empty() ? OrderedJson() : OrderedJson(r.misfit)},
                  {"repeats", r.runs.size()}};
  add_rate(row, "prefill_tokens_per_second", r, rows * prompt, prefill);
  add_rate(row, "decode_tokens_per_second", r, rows * (output - 1), decode);
  add_rate(row, "total_tokens_per_second", r, rows * output,
           [](const RunTimes& run) { return run.prefill_seconds + run.decode_seconds; });
  row["predicted_tokens_per_second"] =
      r.prediction ? OrderedJson(r.prediction->tokens_per_second()) : OrderedJson();
  row["weight_bytes"] = r.weights;
  row["kv_bytes"] = r.kv;
  row["full_kv_bytes"] = r.full_kv;
  row["workspace_bytes"] = r.workspace;
  row["peak_bytes"] = r.runs.empty() ? OrderedJson() : OrderedJson(r.peak);
  row["predicted_peak_bytes"] = r.predicted_peak;
  add_rate(row, "decode_bytes_per_second", r, c.output_len > 1 ? r.decode_bytes : 0, decode);
  const OrderedJson& read = row["decode_bytes_per_second"];
  const OrderedJson share = read.is_null() || !machine.bandwidth
                                ? OrderedJson()
                                : OrderedJson(read.get<double>() / *machine.bandwidth);
  row["memory_bytes_per_second"] =
      machine.bandwidth ? OrderedJson(*machine.bandwidth) : OrderedJson();
  row["bandwidth_share"] = share;
  add_traffic(row, r, machine);
  const auto& a = r.agreement;
  const auto agreed = [&](auto value) { return a ? OrderedJson(value(*a)) : OrderedJson(); };
  row["agreement"] = agreed([](const Agreement& v) { return v.same; });
  row["mean_kl"] = agreed([](const Agreement& v) { return v.mean_kl; });
  row["agreement_rows"] = agreed([](const Agreement& v) { return v.rows; });
  row["agreement_tokens"] = agreed([](const Agreement& v) { return v.tokens; });
  row["first_difference_min"] = agreed([](const Agreement& v) { return v.earliest_difference; });
  row["first_difference_median"] = agreed([](const Agreement& v) { return v.median_difference; });
  row["weight_format"] = r.weight_format;
  row["kv_dtype"] = machine.kv_dtype;
  row["activations"] = r.activations;
  row["isa"] = machine.isa;
  row["threads"] = machine.threads;
  return row;
}

std::string csv_text(const std::vector<OrderedJson>& rows) {
  std::string text;
  for (const OrderedJson& row : rows) {
    std::string names, values;
    for (const auto& [name, value] : row.items()) {
      names += fmt::format("{}{}", names.empty() ? "" : ",", name);
      values += fmt::format("{}{}", values.empty() ? "" : ",", cell(value));
    }
    if (text.empty()) text = names + "\n";
    text += values + "\n";
  }
  return text;
}

std::string table_text(const std::vector<OrderedJson>& rows) {
  std::string text;
  if (!rows.empty() && rows.front()["synthetic"].get<bool>())
    text += "synthetic weights: random numbers, good for speed and memory alone\n";
  text += fmt::format(
      "{:<12}{:>6}{:>6}{:>12}{:>9}{:>26}{:>9}{:>11}{:>11}{:>11}{:>13}{:>11}{:>9}{:>8}\n", "policy",
      "slots", "batch", "tokens", "prefill", "decode [min, max]", "total", "KV", "peak",
      "predicted", "GB/s (share)", "agreement", "KL", "differs");
  const bool several = std::any_of(rows.begin(), rows.end(), [&](const OrderedJson& row) {
    return row["placement"] != rows.front()["placement"];
  });
  OrderedJson placement;
  for (const OrderedJson& row : rows) {
    if (several && row["placement"] != placement)
      text += fmt::format("placement {}\n", row["placement"].get<std::string>());
    placement = row["placement"];
    text += row_text(row);
  }
  for (const OrderedJson& row : rows)
    if (!row["predicted_tokens_per_second"].is_null() && !row["total_tokens_per_second"].is_null())
      text += fmt::format("{} x {}: total {}, predicted {} ({:+.0f} %)\n",
                          row["policy"].get<std::string>(), row["batch"].get<int64_t>(),
                          rate_cell(row, "total_tokens_per_second"),
                          rate_cell(row, "predicted_tokens_per_second"),
                          100 * (row["predicted_tokens_per_second"].get<double>() /
                                     row["total_tokens_per_second"].get<double>() -
                                 1));
  return text +
         "prefill, decode, total: tokens per second (total: generated / (prefill + decode)); GB/s: "
         "weights and cache read "
         "in decode;\nagreement, KL: with the full cache, on its tokens; differs: the first token "
         "that "
         "does when both run freely\n";
}

}  // namespace hydrant
