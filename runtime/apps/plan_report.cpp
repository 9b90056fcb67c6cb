#include "runtime/apps/plan_report.hpp"

#include <array>
#include <set>

#include "runtime/apps/config_file.hpp"
#include "runtime/apps/figures.hpp"
#include "runtime/base/json.hpp"

namespace hydrant {
namespace {

constexpr size_t kRunnersUp = 5;

std::string shares_text(const Shares& s) {
  return fmt::format("{:.4g}/{:.4g}/{:.4g}", s.device, s.host, s.disk);
}

std::string seconds_text(double seconds) {
  if (seconds >= 1) return fmt::format("{:.2f} s", seconds);
  return seconds >= 1e-3 ? fmt::format("{:.2f} ms", seconds * 1e3)
                         : fmt::format("{:.1f} us", seconds * 1e6);
}

// Of a decode step, on average.
LaneSeconds decode_step(const PlanOption& o) {
  const double steps = std::max(1.0, double(o.work.output - 1)) *
                       std::max(1.0, double(o.work.rows) / double(o.batch()));
  return o.prediction.decode.times(1 / steps);
}

std::string option_line(const PlanOption& o) {
  const LaneSeconds step = decode_step(o);
  return fmt::format("{:<8}{:>6}{:>13}  {:<6}{:<18}{:<13}{:>6}{:>11}{:>11}{:>11}{:>11}  {}\n",
                     o.budget.empty() ? "full" : o.budget, o.work.plans.front().slots.capacity(),
                     fmt::format("{} ({} x {})", o.batch(), o.shape.groups, o.shape.rows_per_group),
                     o.config.cache.dtype, shares_text(o.plan.offload.shares),
                     shares_text(o.plan.caches.shares), o.plan.offload.slots, rate_text(o.speed()),
                     seconds_text(step.seconds), bytes_text(o.plan.device.bytes()),
                     bytes_text(o.plan.host.bytes()), step.bound());
}

std::string table(const std::vector<const PlanOption*>& options) {
  std::string text =
      fmt::format("{:<8}{:>6}{:>13}  {:<6}{:<18}{:<13}{:>6}{:>11}{:>11}{:>11}{:>11}  {}\n",
                  "budget", "slots", "batch", "KV", "weights d/h/f %", "cache d/h/f", "ring",
                  "tok/s", "step", "device", "host", "bound by");
  for (const PlanOption* o : options) text += option_line(*o);
  return text;
}

// Options that differ from those before in more than a few rows.
std::vector<const PlanOption*> runners_up(const std::vector<PlanOption>& options) {
  const auto kind = [](const PlanOption& o) {
    return fmt::format("{} {} {} {} {}", o.budget, o.shape.groups, o.plan.offload.shares.host > 0,
                       o.plan.weights_move(), shares_text(o.plan.caches.shares));
  };
  std::set<std::string> seen{kind(options.front())};
  std::vector<const PlanOption*> list;
  for (const PlanOption& o : options)
    if (list.size() < kRunnersUp && seen.insert(kind(o)).second) list.push_back(&o);
  return list;
}

std::string lanes_text(const PlanOption& o) {
  const LaneSeconds s = decode_step(o);
  std::string text = fmt::format("a decode step, on average: {}, bound by {}\n",
                                 seconds_text(s.seconds), s.bound());
  const auto add = [&](const char* name, double seconds) {
    if (seconds > 0) text += fmt::format("  {:<28}{:>12}\n", name, seconds_text(seconds));
  };
  add("compute", s.compute());
  add("link to the device", s.link);
  add("link to the host", s.link_down);
  add("link, both ways at once", s.link_both);
  add("weights from the files", s.disk);
  add("cache from and to disk", s.cache_disk);
  add("rows looked up in the files", s.look_up);
  add("cores, shared by all lanes", s.cores);
  add("memory bus, shared", s.bus);
  return text + fmt::format("prefill {}, decode {}: {} generated tokens at {} tok/s\n",
                            seconds_text(o.prediction.prefill.seconds),
                            seconds_text(o.prediction.decode.seconds),
                            count_text(int64_t(o.prediction.generated)), rate_text(o.speed()));
}

std::string terms_text(const PlanOption& o) {
  const LaneSeconds d = decode_step(o), &p = o.prediction.prefill;
  std::string text =
      fmt::format("{:<32}{:>14}{:>14}\n", "terms (seconds)", "decode step", "prefill");
  const auto add = [&](const char* name, double LaneSeconds::*term) {
    text += fmt::format("  {:<30}{:>14.6f}{:>14.4f}\n", name, d.*term, p.*term);
  };
  add("compute: products", &LaneSeconds::products);
  add("compute: attention", &LaneSeconds::attention);
  add("compute: scoring", &LaneSeconds::scoring);
  add("compute: small operations", &LaneSeconds::operations);
  add("waits for the ring", &LaneSeconds::waiting);
  add("link to the device", &LaneSeconds::link);
  add("link to the host", &LaneSeconds::link_down);
  add("link, both ways at once", &LaneSeconds::link_both);
  add("weights from the files", &LaneSeconds::disk);
  add("cache from and to disk", &LaneSeconds::cache_disk);
  add("rows looked up in the files", &LaneSeconds::look_up);
  add("cores", &LaneSeconds::cores);
  add("memory bus", &LaneSeconds::bus);
  add("step", &LaneSeconds::seconds);
  return text;
}

// What a reader would ask: is moving weights worth it?
std::string verdict(const PlanFound& found, const Device& device) {
  const PlanOption& best = found.options.front();
  std::string text;
  if (!best.offloads())
    text = "no offloading is fastest: all of it fits on the device\n";
  else if (const auto resident = std::find_if(found.options.begin(), found.options.end(),
                                              [](const PlanOption& o) { return !o.offloads(); });
           resident != found.options.end())
    text = fmt::format("all on the device: {} tok/s, a batch of {}\n", rate_text(resident->speed()),
                       resident->batch());
  if (found.in_place && best.offloads())
    text += fmt::format(
        "the {} alone, computing where host memory has it all (--memory-device {}): {} tok/s, a "
        "batch of {}{}\n",
        device.name(), found.in_place->plan.device.bytes(), rate_text(found.in_place->speed()),
        found.in_place->batch(),
        found.in_place->speed() > best.speed() ? "; that is faster than to move anything" : "");
  return text;
}

}  // namespace

std::string plan_text(const PlanFound& found, const Model& model, const Device& device,
                      const RunConfig& config) {
  const PlanOption& best = found.options.front();
  std::string text = fmt::format(
      "{}: {} of {} weights, rows of {} + {} tokens, policy {}; {} plans looked at\n\n",
      model.files.path, bytes_text(best.plan.weights.bytes), best.plan.weights.formats,
      config.plan.prompt_len, config.plan.output_len, config.plan.policy, found.looked_at);
  text += table({&best}) + "\n" + lanes_text(best) + "\n" + memory_line(best.plan) + "\n";
  text += verdict(found, device);
  if (config.plan.explain) text += "\n" + terms_text(best);
  if (const auto others = runners_up(found.options); !others.empty())
    text += "\nnext to it\n" + table(others);
  return text;
}

Json plan_config(const PlanOption& option, const Model& model) {
  constexpr std::array kPaths{"model",
                              "cache.policy",
                              "cache.budget",
                              "cache.sinks",
                              "cache.positions",
                              "cache.dtype",
                              "compute.dtype",
                              "memory.device",
                              "memory.host",
                              "memory.disk",
                              "memory.folder",
                              "memory.link",
                              "placement.weights",
                              "placement.cache",
                              "placement.activations",
                              "prefetch.weight_slots",
                              "prefetch.cache_slots",
                              "prefetch.disk_lanes",
                              "overlap",
                              "batch.rows_per_group",
                              "batch.groups",
                              "batch.prefill_tokens",
                              "threads",
                              "bench.prompt_len",
                              "bench.output_len",
                              "bench.batch",
                              "bench.policy",
                              "bench.budget",
                              "bench.profile",
                              "plan.rows"};
  RunConfig config = option.config;
  config.placement.weights = option.plan.offload.shares;
  config.bench.prompt_len = {option.work.prompt};
  config.bench.output_len = {option.work.output};
  config.bench.batch = {int32_t(option.batch())};
  config.bench.policy = {config.cache.policy};
  if (!option.budget.empty()) config.bench.budget = {option.budget};
  config.bench.profile = config.plan.profile;
  const Json all = effective_config(config, Command::validate);
  Json document = Json::object();
  // Keys without an effect would be warned of.
  const auto idle = [&, weights = config.placement.weights.device == 100,
                     caches = config.placement.cache.device == 100](const std::string& path) {
    if (path == "model") return !model.has_weights();
    if (path == "prefetch.weight_slots" || path == "prefetch.disk_lanes") return weights;
    if (path == "prefetch.cache_slots") return caches;
    if (path == "overlap" || path == "memory.link") return weights && caches;
    return path == "bench.budget" && option.budget.empty();
  };
  for (const std::string path : kPaths) {
    if (idle(path)) continue;
    const size_t dot = path.find('.');
    const std::string section = path.substr(0, dot),
                      key = dot == path.npos ? "" : path.substr(dot + 1);
    if (!all.contains(section)) continue;
    if (key.empty())
      document[section] = all[section];
    else if (all[section].contains(key))
      document[section][key] = all[section][key];
  }
  return document;
}

}  // namespace hydrant
