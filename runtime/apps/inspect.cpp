#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "models/registry.hpp"
#include "runtime/apps/cache_choice.hpp"
#include "runtime/apps/chat.hpp"
#include "runtime/apps/command.hpp"
#include "runtime/apps/config_file.hpp"
#include "runtime/apps/figures.hpp"
#include "runtime/apps/list_devices.hpp"
#include "runtime/apps/memory_plan.hpp"
#include "runtime/apps/output.hpp"
#include "runtime/backends/registry.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/json.hpp"

namespace hydrant {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson architecture(const Model& model, const WeightPlan& plan) {
  const ModelSpec& s = model.spec;
  const BlockSpec& b = s.block;
  return {{"family", s.family},
          {"parameters", plan.parameters},
          {"layers", s.layers},
          {"hidden", s.hidden},
          {"embedding", s.embedding},
          {"heads", b.heads},
          {"kv_heads", b.kv_heads},
          {"head_dim", b.head_dim},
          {"ffn", b.ffn},
          {"vocab", s.vocab},
          {"context", s.max_positions},
          {"rotary_dims", b.rotary.dims},
          {"tied_head", s.tied_head},
          {"eos", s.eos},
          {"bos", s.bos >= 0 ? OrderedJson(s.bos) : OrderedJson()}};
}

// Null: of a shape.
OrderedJson tokenizer_json(const text::Tokenizer* tokenizer, const Model& model) {
  if (!tokenizer) return nullptr;
  OrderedJson json{{"kind", tokenizer->kind()}, {"size", tokenizer->size()}};
  try {
    json["chat_template"] = text::ChatTemplate(chat_source(model.files)).name();
  } catch (const Error& e) {
    json["chat_template"] = nullptr;
    json["chat_template_problem"] = e.what();
  }
  return json;
}

// "model.layers.*.mlp.fc1.weight": a number between dots is a layer's.
std::string pattern_of(const std::string& name) {
  std::string pattern;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    const std::string word = name.substr(begin, end - begin);
    const bool number = !word.empty() && word.find_first_not_of("0123456789") == word.npos;
    pattern.append(begin == 0 ? "" : ".").append(number ? "*" : word);
    begin = end + 1;
  }
  return pattern;
}

// Tensors that differ only in their layer are one line.
OrderedJson tensor_groups(const Checkpoint& checkpoint) {
  struct Group {
    int64_t count = 0;
    uint64_t bytes = 0;
    std::string type, shape;
  };
  std::map<std::string, Group> groups;
  for (const StoredTensor& t : checkpoint.tensors()) {
    const std::string shape = shape_text(t.shape);
    Group& g = groups[fmt::format("{}|{}|{}", pattern_of(printable(t.name)), t.type_name, shape)];
    g = {g.count + 1, g.bytes + t.bytes, t.type_name, shape};
  }
  OrderedJson list = OrderedJson::array();
  for (const auto& [key, g] : groups)
    list.push_back({{"name", key.substr(0, key.find('|'))},
                    {"count", g.count},
                    {"type", g.type},
                    {"shape", g.shape},
                    {"bytes", g.bytes}});
  return list;
}

OrderedJson machine(const Device& device) {
  OrderedJson usable = OrderedJson::object(), off = OrderedJson::object();
  for (const Backend& b : backends()) {
    if (!b.usable() || !b.paths) continue;
    for (const InstructionPath& path : b.paths())
      (path.automatic ? usable : off)[std::string(b.name)].push_back(path.name);
  }
  return {{"device", device.name()},
          {"isa", device.isa()},
          {"threads", device.threads()},
          {"usable", std::move(usable)},
          {"off_by_default", std::move(off)}};
}

OrderedJson tier_json(const Tier& tier) {
  OrderedJson items = OrderedJson::object();
  for (const MemoryItem& item : tier.items) items[item.what] = item.bytes;
  return {{"bytes", tier.bytes()},
          {"cap", tier.cap ? OrderedJson(*tier.cap) : OrderedJson()},
          {"items", std::move(items)}};
}

OrderedJson memory_json(const MemoryPlan& p) {
  const Shares &s = p.run.offload.shares, &c = p.run.caches.shares;
  return {{"batch", p.batch},
          {"prompt_len", p.prompt},
          {"length", p.length},
          {"budget_slots", p.slots},
          {"weight_bytes", p.run.weights.bytes},
          {"kv_bytes", p.kv},
          {"full_kv_bytes", p.full_kv},
          {"workspace_bytes", p.workspace},
          {"placement", {{"device", s.device}, {"host", s.host}, {"disk", s.disk}}},
          {"cache_placement", {{"device", c.device}, {"host", c.host}, {"disk", c.disk}}},
          {"device", tier_json(p.run.device)},
          {"host", tier_json(p.run.host)},
          {"disk", tier_json(p.run.disk)},
          {"process_bytes", p.run.process},
          {"predicted_peak_bytes", p.run.peak()},
          {"most_peak_bytes", p.run.most()},
          {"fits", p.misfit.empty()},
          {"misfit", p.misfit.empty() ? OrderedJson() : OrderedJson(p.misfit)}};
}

std::string tier_text(const char* name, const Tier& tier) {
  return fmt::format("  {:<12}{}{}\n", name, tier.text(),
                     tier.cap ? fmt::format(" (may be {})", bytes_text(*tier.cap)) : "");
}

std::string memory_text(const MemoryPlan& plan, const RunConfig& config) {
  const Shares &s = plan.run.offload.shares, &c = plan.run.caches.shares;
  return fmt::format(
             "memory        for {} rows of {} tokens ({} of them prompt), policy {} with {} slots "
             "(KV of the full cache: {}):\n"
             "  weights     {}: {} % on the device, {} % on the host, {} % in the model's files\n",
             count_text(plan.batch), count_text(plan.length), count_text(plan.prompt),
             config.cache.policy, count_text(plan.slots), bytes_text(plan.full_kv),
             bytes_text(plan.run.weights.bytes), s.device, s.host, s.disk) +
         (plan.run.caches_move()
              ? fmt::format(
                    "  cache       {} % of its rows on the device, {} % on the host, {} % on "
                    "disk\n",
                    c.device, c.host, c.disk)
              : "") +
         tier_text("device", plan.run.device) + tier_text("host", plan.run.host) +
         tier_text("disk", plan.run.disk) +
         fmt::format("  {:<12}{} with the program itself, at most {}\n", "peak",
                     bytes_text(plan.run.peak()), bytes_text(plan.run.most())) +
         (plan.misfit.empty() ? "" : "  does not fit: " + plan.misfit + "\n");
}

std::string tokenizer_text(const OrderedJson& t) {
  if (t.is_null()) return "none here";
  return fmt::format(
      "{}, {} ids; chat template: {}", t["kind"].get<std::string>(),
      count_text(t["size"].get<int64_t>()),
      t["chat_template"].is_null() ? "none that is known" : t["chat_template"].get<std::string>());
}

std::string text_of(const OrderedJson& doc, const MemoryPlan& plan, const RunConfig& config) {
  const OrderedJson &a = doc["architecture"], &w = doc["weights"], &m = doc["machine"];
  const auto number = [](const OrderedJson& j) { return count_text(j.get<int64_t>()); };
  std::string out = fmt::format(
      "{}\n"
      "architecture  {}, {} parameters, {} layers, hidden {}, {} heads / {} KV heads of {}, ffn "
      "{}\n"
      "context       {} positions, vocabulary {}\n"
      "tokenizer     {}\n"
      "weights       {}{} tensors, {} as {}; activations {}\n",
      config.model, a["family"].get<std::string>(), number(a["parameters"]), number(a["layers"]),
      number(a["hidden"]), number(a["heads"]), number(a["kv_heads"]), number(a["head_dim"]),
      number(a["ffn"]), number(a["context"]), number(a["vocab"]), tokenizer_text(doc["tokenizer"]),
      w["there"].get<bool>() ? "" : "none here, a shape only; they would be ", number(w["tensors"]),
      bytes_text(w["stored_bytes"].get<size_t>()), w["formats"].get<std::string>(),
      w["activations"].get<std::string>());
  for (const OrderedJson& g : doc["tensors"])
    out += fmt::format("  {:<52} {:>5} x {:<6} {:<16} {:>12}\n", g["name"].get<std::string>(),
                       g["count"].get<int64_t>(), g["type"].get<std::string>(),
                       g["shape"].get<std::string>(), bytes_text(g["bytes"].get<size_t>()));
  std::string usable;
  for (const auto& [backend, paths] : m["usable"].items()) {
    usable += fmt::format("; {} can use", backend);
    for (const auto& path : paths) usable += fmt::format(" {}", path.get<std::string>());
  }
  for (const auto& [backend, paths] : m["off_by_default"].items())
    for (const auto& path : paths)
      usable +=
          fmt::format("; {} has {}, which is off by default", backend, path.get<std::string>());
  out += fmt::format("machine       {}: {}, {} threads{}\n", m["device"].get<std::string>(),
                     m["isa"].get<std::string>(), number(m["threads"]), usable);
  return out + memory_text(plan, config);
}

}  // namespace

int run_inspect(const RunConfig& config, const Sources& sources) {
  if (config.inspect.devices) return list_devices(config);
  const Model model = open_model_or_shape(config, sources);
  // Part of the process that a run's plan begins with.
  const auto tokenizer = model.has_weights() ? open_tokenizer(model.files) : nullptr;
  const auto device = open_device(config);
  const MemoryPlan memory = plan_memory(config, sources, model, *device);
  const WeightPlan& weights = memory.run.weights;
  OrderedJson doc{{"model", config.model},
                  {"architecture", architecture(model, weights)},
                  {"tokenizer", tokenizer_json(tokenizer.get(), model)},
                  {"weights",
                   {{"there", model.has_weights()},
                    {"tensors", model.files.checkpoint.tensors().size()},
                    {"stored_bytes", weights.stored_bytes},
                    {"bytes", weights.bytes},
                    {"formats", weights.formats},
                    {"activations", weights.activations}}},
                  {"tensors", tensor_groups(model.files.checkpoint)},
                  {"machine", machine(*device)}};
  doc["memory"] = memory_json(memory);
  doc["config"] = effective_config(placed(config, memory.run), Command::inspect);
  Output("").write(config.inspect.json
                       ? doc.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n"
                       : text_of(doc, memory, config));
  // A shape runs nowhere: what it would take elsewhere is an answer, not a failure.
  return memory.misfit.empty() || !model.has_weights() ? 0 : exit_code(Fault::out_of_memory);
}

}  // namespace hydrant
