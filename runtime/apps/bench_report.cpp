#include "runtime/apps/bench_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "runtime/apps/figures.hpp"
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
              const std::function<double(const BenchRun&)>& seconds) {
  std::vector<double> rates;
  for (const BenchRun& run : result.runs)
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
    const double steps = double(std::max<int64_t>(t.steps, 1));
    row[name] = double(measured) / steps;
    row["predicted_" + name] = double(predicted) / steps;
  };
  row["weights_on_device"] = machine.weights.device;
  row["weights_on_host"] = machine.weights.host;
  row["weights_on_disk"] = machine.weights.disk;
  add("host_bytes_per_step", t.measured.from_host, t.predicted.from_host);
  add("disk_bytes_per_step", t.measured.from_disk, t.predicted.from_disk);
  add("file_bytes_per_step", t.measured.file, t.predicted.file);
  const uint64_t runs = result.runs.size();
  const CacheMoves &moved = t.caches, &said = result.cache_moves;
  row["cache_on_device"] = machine.caches.device;
  row["cache_on_host"] = machine.caches.host;
  row["cache_on_disk"] = machine.caches.disk;
  add("cache_to_device_bytes_per_step", moved.to_device, runs * said.to_device);
  add("cache_to_host_bytes_per_step", moved.to_host, runs * said.to_host);
  add("cache_read_bytes_per_step", moved.read, runs * said.read);
  row["cache_written_bytes"] = moved.written;  // wear: of all repeats
  row["link_bytes_per_second"] = machine.link ? OrderedJson(*machine.link) : OrderedJson();
}

std::string cell(const OrderedJson& value) {
  if (value.is_null()) return "";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string rate_cell(const OrderedJson& row, const std::string& name) {
  return row[name].is_null() ? "-" : rate_text(row[name].get<double>());
}

std::string range_cell(const OrderedJson& row, const std::string& name) {
  if (row[name].is_null()) return "-";
  return fmt::format("{} [{}, {}]", rate_cell(row, name), rate_cell(row, name + "_min"),
                     rate_cell(row, name + "_max"));
}

}  // namespace

OrderedJson json_row(const BenchResult& r, const BenchMachine& machine) {
  const BenchCase& c = *r.bench;
  const double rows = c.batch, prompt = c.prompt_len, output = c.output_len;
  const auto prefill = [](const BenchRun& run) { return run.prefill_seconds; };
  const auto decode = [](const BenchRun& run) { return run.decode_seconds; };
  OrderedJson row{{"policy", c.policy},
                  {"budget", c.budget.empty() ? OrderedJson() : OrderedJson(c.budget)},
                  {"budget_slots", c.slots()},
                  {"budget_share_of_prompt", double(c.slots()) / prompt},
                  {"budget_share_of_length", double(c.slots()) / (prompt + output)},
                  {"batch", c.batch},
                  {"prompt_len", c.prompt_len},
                  {"output_len", c.output_len},
                  {"repeats", r.runs.size()}};
  add_rate(row, "prefill_tokens_per_second", r, rows * prompt, prefill);
  add_rate(row, "decode_tokens_per_second", r, rows * (output - 1), decode);
  add_rate(row, "total_tokens_per_second", r, rows * output,
           [](const BenchRun& run) { return run.prefill_seconds + run.decode_seconds; });
  row["predicted_tokens_per_second"] =
      r.prediction ? OrderedJson(r.prediction->tokens_per_second()) : OrderedJson();
  row["weight_bytes"] = r.weights;
  row["kv_bytes"] = r.kv;
  row["full_kv_bytes"] = r.full_kv;
  row["workspace_bytes"] = r.workspace;
  row["peak_bytes"] = r.peak;
  row["predicted_peak_bytes"] = r.predicted_peak;
  add_rate(row, "decode_bytes_per_second", r, c.output_len > 1 ? r.decode_bytes : 0, decode);
  row["memory_bytes_per_second"] = r.bandwidth;
  row["bandwidth_share"] =
      row["decode_bytes_per_second"].is_null()
          ? OrderedJson()
          : OrderedJson(row["decode_bytes_per_second"].get<double>() / r.bandwidth);
  add_traffic(row, r, machine);
  const auto& a = r.agreement;
  const auto agreed = [&](auto value) { return a ? OrderedJson(value(*a)) : OrderedJson(); };
  row["agreement"] = agreed([](const Agreement& v) { return v.same; });
  row["mean_kl"] = agreed([](const Agreement& v) { return v.mean_kl; });
  row["agreement_rows"] = agreed([](const Agreement& v) { return v.rows; });
  row["agreement_tokens"] = agreed([](const Agreement& v) { return v.tokens; });
  row["first_difference_min"] = agreed([](const Agreement& v) { return v.earliest_difference; });
  row["first_difference_median"] = agreed([](const Agreement& v) { return v.median_difference; });
  row["weight_format"] = machine.weight_format;
  row["kv_dtype"] = machine.kv_dtype;
  row["activations"] = machine.activations;
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
  std::string text = fmt::format(
      "{:<12}{:>6}{:>6}{:>12}{:>9}{:>26}{:>9}{:>11}{:>11}{:>11}{:>13}{:>11}{:>9}{:>8}\n", "policy",
      "slots", "batch", "tokens", "prefill", "decode [min, max]", "total", "KV", "peak",
      "predicted", "GB/s (share)", "agreement", "KL", "differs");
  for (const OrderedJson& row : rows) {
    const auto bytes = [&](const char* key) { return bytes_text(row[key].get<size_t>()); };
    const bool agreed = !row["agreement"].is_null(), read = !row["bandwidth_share"].is_null();
    text += fmt::format(
        "{:<12}{:>6}{:>6}{:>12}{:>9}{:>26}{:>9}{:>11}{:>11}{:>11}{:>13}{:>11}{:>9}{:>8}\n",
        row["policy"].get<std::string>(), row["budget_slots"].get<int64_t>(),
        row["batch"].get<int64_t>(),
        fmt::format("{} + {}", row["prompt_len"].get<int64_t>(), row["output_len"].get<int64_t>()),
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
