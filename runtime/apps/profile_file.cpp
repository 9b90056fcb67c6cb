#include "runtime/apps/profile_file.hpp"

#include <cmath>
#include <fstream>

#include "runtime/base/error.hpp"
#include "runtime/base/file.hpp"
#include "runtime/base/json.hpp"
#include "runtime/base/log.hpp"

namespace hydrant {
namespace {

using OrderedJson = nlohmann::ordered_json;
constexpr const char* kKind = "hydrant profile";
constexpr int kFormatVersion = 2;  // 2: what a disk's request takes beside its bytes

constexpr const char* kActivations[] = {"f32", "bf16", "int8", "f16"};

OrderedJson curve_json(const Curve& curve, const char* size, const char* value) {
  OrderedJson list = OrderedJson::array();
  for (const auto& [x, y] : curve.points) list.push_back({{size, x}, {value, y}});
  return list;
}

OrderedJson disk_json(const DiskRates& rates) {
  OrderedJson list = OrderedJson::array();
  for (size_t i = 0; i < rates.byte.points.size(); i++)
    list.push_back({{"under_way", rates.byte.points[i].first},
                    {"seconds_per_request", rates.request.points[i].second},
                    {"seconds_per_byte", rates.byte.points[i].second}});
  return list;
}

OrderedJson bus_json(const BusRates& bus) {
  const auto way = [](const Curve& curve) {
    return curve_json(curve, "copy_bytes", "bytes_per_second");
  };
  return {{"to_device", way(bus.up)},
          {"to_host", way(bus.down)},
          {"to_device_while_both", way(bus.up_shared)},
          {"to_host_while_both", way(bus.down_shared)}};
}

OrderedJson operation_json(const OperationRate& rate) {
  return {{"seconds_per_call", rate.call}, {"seconds_per_element", rate.element}};
}

// A value of the file, with the path to it.
class Reader {
 public:
  Reader(const Json& value, std::string file, std::string path = "")
      : value_(value), file_(std::move(file)), path_(std::move(path)) {}

  Reader at(const char* key) const {
    const Reader inner(value_, file_, path_.empty() ? key : path_ + "." + key);
    if (!value_.is_object() || !value_.contains(key))
      fail(Fault::bad_config, "{}: key {} is missing", file_, inner.path_);
    return {value_[key], file_, inner.path_};
  }
  bool has(const char* key) const { return value_.is_object() && value_.contains(key); }
  std::vector<Reader> list() const {
    if (!value_.is_array() || value_.empty()) refuse("a list with entries");
    std::vector<Reader> entries;
    for (size_t i = 0; i < value_.size(); i++)
      entries.push_back({value_[i], file_, fmt::format("{}[{}]", path_, i)});
    return entries;
  }
  double above_zero() const {
    const double v = any_number();
    if (!(v > 0)) refuse("a number above 0");
    return v;
  }
  // A difference of what was measured may be nothing.
  double zero_or_more() const {
    const double v = any_number();
    if (!(v >= 0)) refuse("a number of at least 0");
    return v;
  }
  double rate() const {
    const double v = any_number();
    if (!(v >= 1)) refuse("a number of at least 1");
    return v;
  }
  int count() const {
    constexpr int kMost = 65536;
    const double v = any_number();
    if (!(v >= 1 && v <= kMost && v == std::floor(v)))
      refuse(fmt::format("an integer from 1 to {}", kMost));
    return int(v);
  }
  std::string text() const {
    if (!value_.is_string()) refuse("a text");
    return value_.get<std::string>();
  }
  DType dtype() const {
    const auto dtype = dtype_named(text());
    if (!dtype) fail(Fault::bad_config, "{}: {}: unknown format '{}'", file_, path_, text());
    return *dtype;
  }
  Activations activations() const {
    for (size_t i = 0; i < std::size(kActivations); i++)
      if (text() == kActivations[i]) return Activations(i);
    refuse("f32, bf16, int8 or f16");
  }
  using Number = double (Reader::*)() const;
  Curve curve(const char* size, const char* value, Number number,
              Curve::Beyond beyond = Curve::Beyond::straight) const {
    Curve curve{{}, beyond};
    for (const Reader& point : list()) {
      curve.points.emplace_back(point.at(size).above_zero(), (point.at(value).*number)());
      const size_t n = curve.points.size();
      if (n > 1 && curve.points[n - 1].first <= curve.points[n - 2].first)
        fail(Fault::bad_config, "{}: {}: its {} must ascend", file_, point.path_, size);
    }
    return curve;
  }
  OperationRate operation() const {
    return {at("seconds_per_call").zero_or_more(), at("seconds_per_element").zero_or_more()};
  }

 private:
  double any_number() const {
    if (!value_.is_number()) refuse("a number");
    return value_.get<double>();
  }
  [[noreturn]] void refuse(const std::string& what) const {
    fail(Fault::bad_config, "{}: {}: must be {}, not {}", file_, path_, what, shown(value_));
  }

  const Json& value_;
  std::string file_, path_;
};

}  // namespace

std::string processor_name() {
  std::ifstream lines("/proc/cpuinfo");
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

std::string profile_text(const MachineRates& r, const ProfileOrigin& origin) {
  OrderedJson doc{{"kind", kKind},
                  {"format_version", kFormatVersion},
                  {"date", origin.date},
                  {"machine",
                   {{"device", r.device},
                    {"description", origin.device_line},
                    {"isa", r.isa},
                    {"processor", r.processor},
                    {"system", origin.system},
                    {"threads", r.threads},
                    {"cores", r.cores}}},
                  {"memory", {{"read_bytes_per_second", r.memory}}},
                  {"copy_to_device", curve_json(r.copy, "under_way", "bytes_per_second")},
                  {"disk",
                   {{"folder", origin.disk.folder},
                    {"direct", origin.disk.direct},
                    {"request_bytes", {kSmallRequest, kLargeRequest}},
                    {"read", disk_json(r.disk_read)},
                    {"write", disk_json(r.disk_write)}}},
                  {"fork_join_seconds", r.fork_join},
                  {"blocks", curve_json(r.block, "activation_elements", "seconds_beside_products")},
                  {"logits", operation_json(r.logits)}};
  if (r.bus.measured()) doc["bus"] = bus_json(r.bus);
  if (!origin.disk.file.empty())
    doc["disk"]["model"] = {{"file", origin.disk.file}, {"read", disk_json(r.file_read)}};
  for (const PackRate& p : r.packing)
    doc["packing"].push_back({{"format", name(p.format)}, {"cpu_seconds_per_byte", p.byte}});
  for (const ProductRate& p : r.products)
    doc["products"].push_back(
        {{"format", name(p.format)},
         {"activations", kActivations[size_t(p.activations)]},
         {"weights", curve_json(p.weight, "rows", "seconds_per_weight")},
         {"calls", curve_json(p.call, "input_elements", "seconds_per_call")}});
  for (const AttentionRate& a : r.attention)
    doc["attention"].push_back(
        {{"dtype", name(a.dtype)},
         {"decode", curve_json(a.decode, "heads_per_kv_head", "seconds_per_key_component")},
         {"scored", curve_json(a.scored, "heads_per_kv_head", "seconds_per_key_component")},
         {"prompt", curve_json(a.prompt, "head_dim", "seconds_per_query_and_key")},
         {"columns", curve_json(a.columns, "head_dim", "seconds_per_query_and_key")}});
  return doc.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

MachineRates read_profile(const std::string& path) {
  const Json doc = parse_json(read_text(path, 1 << 20), path, Fault::bad_config);
  if (!doc.is_object() || doc.value("kind", Json()) != kKind)
    fail(Fault::bad_config, "{}: not a profile; 'hydrant profile --output {}' makes one", path,
         path);
  const Reader top(doc, path);
  if (top.at("format_version").count() != kFormatVersion)
    fail(Fault::bad_config,
         "{}: format_version is {}, this program reads {}; 'hydrant profile --output {}' measures "
         "again",
         path, shown(doc["format_version"]), kFormatVersion, path);
  const Reader machine = top.at("machine"), disk = top.at("disk");
  MachineRates r;
  r.source = path;
  r.device = machine.at("device").text();
  r.isa = machine.at("isa").text();
  r.processor = machine.at("processor").text();
  r.threads = machine.at("threads").count();
  r.cores = machine.at("cores").count();
  r.memory = top.at("memory").at("read_bytes_per_second").rate();
  const auto rates = [](const Reader& list) {
    return list.curve("under_way", "bytes_per_second", &Reader::rate, Curve::Beyond::level);
  };
  r.copy = rates(top.at("copy_to_device"));
  if (top.has("bus")) {
    const Reader bus = top.at("bus");
    const auto way = [&](const char* key) {
      return bus.at(key).curve("copy_bytes", "bytes_per_second", &Reader::rate,
                               Curve::Beyond::level);
    };
    r.bus = {way("to_device"), way("to_host"), way("to_device_while_both"),
             way("to_host_while_both")};
  }
  const auto requests = [](const Reader& list) {
    const auto level = Curve::Beyond::level;
    return DiskRates{list.curve("under_way", "seconds_per_request", &Reader::zero_or_more, level),
                     list.curve("under_way", "seconds_per_byte", &Reader::above_zero, level)};
  };
  r.disk_read = requests(disk.at("read"));
  r.disk_write = requests(disk.at("write"));
  r.file_read = disk.has("model") ? requests(disk.at("model").at("read")) : r.disk_read;
  r.fork_join = top.at("fork_join_seconds").zero_or_more();
  r.block = top.at("blocks").curve("activation_elements", "seconds_beside_products",
                                   &Reader::zero_or_more);
  r.logits = top.at("logits").operation();
  for (const Reader& p : top.at("packing").list())
    r.packing.push_back({p.at("format").dtype(), p.at("cpu_seconds_per_byte").above_zero()});
  for (const Reader& p : top.at("products").list())
    r.products.push_back(
        {p.at("format").dtype(), p.at("activations").activations(),
         p.at("weights").curve("rows", "seconds_per_weight", &Reader::above_zero),
         p.at("calls").curve("input_elements", "seconds_per_call", &Reader::zero_or_more)});
  for (const Reader& a : top.at("attention").list()) {
    const auto by_heads = [&](const char* key, Reader::Number number) {
      return a.at(key).curve("heads_per_kv_head", "seconds_per_key_component", number);
    };
    const auto by_dims = [&](const char* key, Reader::Number number) {
      return a.at(key).curve("head_dim", "seconds_per_query_and_key", number);
    };
    r.attention.push_back({a.at("dtype").dtype(), by_heads("decode", &Reader::above_zero),
                           by_heads("scored", &Reader::zero_or_more),
                           by_dims("prompt", &Reader::above_zero),
                           by_dims("columns", &Reader::above_zero)});
  }
  return r;
}

void warn_of_other_machine(const MachineRates& r, const std::string& path, const Device& device) {
  std::string others;
  const auto compare = [&](const std::string& measured, const std::string& here) {
    if (measured != here)
      others += fmt::format("{}{}, not {}", others.empty() ? "" : "; ", measured, here);
  };
  compare(r.device, std::string(device.name()));
  compare(r.processor, processor_name());
  compare(r.isa, std::string(device.isa()));
  compare(fmt::format("{} threads", r.threads), fmt::format("{} threads", device.threads()));
  if (!others.empty())
    log::warning("{}: measured elsewhere ({}): what it predicts is not for this machine", path,
                 others);
}

}  // namespace hydrant
