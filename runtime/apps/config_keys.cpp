#include "runtime/apps/config_keys.hpp"

#include <fmt/format.h>

#include <array>
#include <limits>

#include "policies/budget.hpp"
#include "policies/registry.hpp"
#include "runtime/apps/key_kinds.hpp"
#include "runtime/apps/placement_keys.hpp"
#include "runtime/base/json.hpp"

namespace hydrant {
namespace {

using enum Command;
constexpr Commands kModel(generate, score, tokenize, inspect, bench, Command::plan,
                          Command::profile);
constexpr Commands kAll(generate, score, tokenize, inspect, bench, Command::profile, Command::plan);
constexpr Commands kRuns(generate, score, bench);            // what computes
constexpr Commands kSized(generate, score, bench, inspect);  // what needs the shape of a run
constexpr Commands kPlanned(generate, score, bench, inspect, Command::plan);  // what it is made of
constexpr Commands kMachine(generate, score, bench, inspect, Command::profile, Command::plan);
constexpr Commands kRows(generate, score, tokenize);
constexpr uint64_t kSlots = policy::kMaxSlots, kTokens = 1 << 24,
                   kIds = std::numeric_limits<int32_t>::max();

bool is_budget(const std::string& text) { return policy::parse_amount(text).has_value(); }
bool is_not_empty(const std::string& text) { return !text.empty(); }
bool is_policy(const std::string& text) { return policy::policy_named(text).has_value(); }

const std::string kBudgetRule = fmt::format(
    "1 to {} slots (204), or a share above 0% and up to 100% with at most four decimals, of prompt "
    "+ "
    "output (\"20%\") or of the prompt (\"20%p\")",
    kSlots);

// Slots may also be given as a number.
Json budget_text(const Json& value) {
  return value.is_number_unsigned() ? Json(value.dump()) : value;
}

Key budget(kinds::Member<std::string> member) {
  Key key = kinds::text(member, kBudgetRule, is_budget);
  key.read = [inner = key.read](RunConfig& c, const Json& j, const std::string& where) {
    inner(c, budget_text(j), where);
  };
  return key;
}

Key budgets(kinds::Member<std::vector<std::string>> member) {
  Key key = kinds::texts(member, "budgets: " + kBudgetRule, is_budget, true);
  key.read = [inner = key.read](RunConfig& c, const Json& j, const std::string& where) {
    Json texts = j;
    if (j.is_array())
      for (Json& entry : texts) entry = budget_text(entry);
    inner(c, texts, where);
  };
  return key;
}

// "local, sinks": the policies that have a region.
std::string policies_with(bool policy::Regions::*region) {
  std::string names;
  policy::for_each([&](auto policy) {
    if (policy.regions.*region) names.append(names.empty() ? "" : ", ").append(policy.name);
  });
  return names;
}

Key named(Key key, const char* path, const char* flag, const char* value, Commands commands,
          const std::string& help) {
  key.path = path;
  key.flag = flag;
  key.value = value;
  key.commands = commands;
  key.help = help;
  return key;
}

Key files_only(Commands commands, Key key) {
  key.files_only = commands;
  return key;
}

Key same_rows(Key key) {
  key.same_rows = true;
  return key;
}

// clang-format off
std::vector<Key> make() {
  using namespace kinds;
  const std::string policies = policy::policy_names();
  return {
      named(text([](RunConfig& c) -> auto& { return c.model; }, "the path of a model folder or .gguf file"),
            "model", "--model", "PATH", kModel, "a Hugging Face folder or a .gguf file"),

      named(text([](RunConfig& c) -> auto& { return c.synthetic.shape; }, "a name or path"),
            "synthetic", "--synthetic", "SHAPE", Commands(bench), "instead of a model: random weights, for speeds, of a shape that is known (opt-6.7b) or a config.json"),
      named(choice([](RunConfig& c) -> auto& { return c.synthetic.format; }, {"auto", "f32", "f16", "bf16", "q8_0", "q4_0"}),
            "synthetic_format", "--synthetic-format", "TYPE", Commands(bench), "of its weights: auto (what the shape says), f32, f16, bf16, q8_0, q4_0"),

      same_rows(named(text([](RunConfig& c) -> auto& { return c.prompt; }, "a text"),
            "prompt", "--prompt", "TEXT", Commands(generate), "one prompt; - reads standard input")),
      same_rows(named(text([](RunConfig& c) -> auto& { return c.prompts; }, "the path of a JSONL file"),
            "prompts", "--prompts", "IN.jsonl", Commands(generate), "many prompts, one JSON object a line; - reads standard input")),
      same_rows(named(text([](RunConfig& c) -> auto& { return c.input; }, "the path of a JSONL file"),
            "input", "--input", "IN.jsonl", Commands(score, tokenize), "what to work on, one JSON object a line; - reads standard input")),
      same_rows(named(text([](RunConfig& c) -> auto& { return c.perplexity; }, "the path of a text file"),
            "perplexity", "--perplexity", "FILE", Commands(score), "score a whole text through the cache")),
      named(integer([](RunConfig& c) -> auto& { return c.context; }, 0, kTokens),
            "context", "--context", "N", Commands(score), "tokens of a --perplexity window; 0: the model's limit"),
      same_rows(named(text([](RunConfig& c) -> auto& { return c.output; }, "a path"),
            "output", "--output", "OUT.jsonl", kRows, "where results go, line by line; default: standard output")),
      same_rows(named(toggle([](RunConfig& c) -> auto& { return c.resume; }),
            "resume", "--resume", "", Commands(generate, score), "go on with results that are there: add the rows that are missing or that failed")),
      same_rows(named(toggle([](RunConfig& c) -> auto& { return c.overwrite; }),
            "overwrite", "--overwrite", "", kRows, "replace results that are there; nothing but earlier results is replaced")),

      named(text([](RunConfig& c) -> auto& { return c.cache.policy; }, "one of " + policies, is_policy),
            "cache.policy", "--policy", "NAME", Commands(generate, score, inspect), "which tokens stay: " + policies),
      named(integer([](RunConfig& c) -> auto& { return c.cache.heavy; }, 0, kSlots),
            "cache.heavy", "--heavy", "SLOTS", Commands(generate, score, inspect), fmt::format("slots for tokens kept by score ({})", policies_with(&policy::Regions::heavy))),
      named(integer([](RunConfig& c) -> auto& { return c.cache.recent; }, 0, kSlots),
            "cache.recent", "--recent", "SLOTS", Commands(generate, score, inspect), fmt::format("slots for the latest tokens ({})", policies_with(&policy::Regions::recent))),
      named(integer([](RunConfig& c) -> auto& { return c.cache.sinks; }, 0, kSlots),
            "cache.sinks", "--sinks", "SLOTS", kPlanned, fmt::format("slots for the first tokens ({})", policies_with(&policy::Regions::sinks))),
      named(budget([](RunConfig& c) -> auto& { return c.cache.budget; }), "cache.budget", "--budget", "SIZE", Commands(generate, score, inspect),
            "all slots together: 204, 20% of prompt + output, or 20%p of the prompt"),
      named(budgets([](RunConfig& c) -> auto& { return c.cache.layer_budgets; }),
            "cache.layer_budgets", "--layer-budgets", "SIZE,...", Commands(generate, score, inspect), "a budget for each layer, instead of one for all"),
      named(choice([](RunConfig& c) -> auto& { return c.cache.positions; }, {"original", "cache"}),
            "cache.positions", "--positions", "WHICH", kPlanned, "a key's place: original, or its rank in the cache"),
      named(choice([](RunConfig& c) -> auto& { return c.cache.dtype; }, {"auto", "f32", "f16", "bf16"}),
            "cache.dtype", "--cache-dtype", "TYPE", kPlanned, "keys and values: auto (f32 if compute.dtype is f32, else bf16, or f16 on a card that has no tensor cores for bf16), f32, f16, bf16"),

      named(choice([](RunConfig& c) -> auto& { return c.compute_dtype; }, {"auto", "f32"}),
            "compute.dtype", "--compute-dtype", "TYPE", kPlanned, "products: auto (rounds activations to bf16, f16 or int8 blocks) or f32 (exact)"),

      same_rows(named(size([](RunConfig& c) -> auto& { return c.memory.device; }),
            "memory.device", "--memory-device", "BYTES", kPlanned, "what may be used of the device's memory (64MiB, 1.5GB); default: what is free")),
      same_rows(named(size([](RunConfig& c) -> auto& { return c.memory.host; }),
            "memory.host", "--memory-host", "BYTES", kPlanned, "what may be used of the host's memory beside it; default: what is free")),
      same_rows(named(size([](RunConfig& c) -> auto& { return c.memory.disk; }),
            "memory.disk", "--memory-disk", "BYTES", kPlanned, "what may be written to disk; default: what is free")),
      same_rows(named(text([](RunConfig& c) -> auto& { return c.memory.folder; }, "the path of a folder"),
            "memory.folder", "--memory-folder", "PATH", kPlanned, "where that is; default: /var/tmp")),
      same_rows(named(rate([](RunConfig& c) -> auto& { return c.memory.link; }),
            "memory.link", "--memory-link", "RATE", kPlanned, "slow copies to the device down to this pace (3GB/s): on the CPU, a stand-in for its bus")),
      same_rows(files_only(Commands(bench), named(whole_placement(), "placement", "--placement", "HOW", kSized,
            "auto, or six percentages: device,host of weights, of cache and of activations (20,80,0,100,0,100); the rest is disk"))),
      same_rows(named(shares([](RunConfig& c) -> auto& { return c.placement.weights; }),
            "placement.weights", "--placement-weights", "DEVICE,HOST,DISK", kSized, "percentages of their bytes; those on disk are read from the model's files")),
      same_rows(named(shares([](RunConfig& c) -> auto& { return c.placement.cache; }),
            "placement.cache", "--placement-cache", "DEVICE,HOST,DISK", kSized, "percentages of each group's rows")),
      same_rows(named(shares([](RunConfig& c) -> auto& { return c.placement.activations; }),
            "placement.activations", "--placement-activations", "DEVICE,HOST,DISK", kSized, "percentages of a step's hidden states that wait on the device and on the host; none on disk")),
      same_rows(named(integer([](RunConfig& c) -> auto& { return c.prefetch.weight_slots; }, 2, 64),
            "prefetch.weight_slots", "--weight-slots", "N", kSized, "room on the device for weights that pass through, in layers: one in use, the others filled ahead")),
      same_rows(named(integer([](RunConfig& c) -> auto& { return c.prefetch.cache_slots; }, 2, 64),
            "prefetch.cache_slots", "--cache-slots", "N", kSized, "the same for the cache, in layers of a group")),
      same_rows(named(integer([](RunConfig& c) -> auto& { return c.prefetch.disk_lanes; }, 1, 16),
            "prefetch.disk_lanes", "--disk-lanes", "N", kPlanned, "reads of the model's files under way at a time; 8 if not given, or fewer where host memory is short")),
      same_rows(named(toggle([](RunConfig& c) -> auto& { return c.overlap; }),
            "overlap", "--overlap", "", kSized, "move and compute at the same time; --no-overlap: one after the other")),
      same_rows(named(choice([](RunConfig& c) -> auto& { return c.cache_compute; }, {"auto", "device", "host"}),
            "cache_compute", "--cache-compute", "WHERE", kSized, "where attention runs over cache rows that are not on the device: auto, device, host")),

      same_rows(named(integer([](RunConfig& c) -> auto& { return c.batch.rows_per_group; }, 1, 65536),
            "batch.rows_per_group", "--rows-per-group", "N", Commands(generate, score), "most rows that go through a layer together")),
      same_rows(named(integer([](RunConfig& c) -> auto& { return c.batch.groups; }, 1, 4096),
            "batch.groups", "--groups", "N", kRuns, "groups of rows that take turns in a layer")),
      same_rows(named(integer([](RunConfig& c) -> auto& { return c.batch.prefill_chunk; }, 1, 1 << 20),
            "batch.prefill_chunk", "--prefill-chunk", "TOKENS", kSized, "prompt tokens that go through a layer together")),
      same_rows(named(integer([](RunConfig& c) -> auto& { return c.batch.prefill_tokens; }, 1, kTokens),
            "batch.prefill_tokens", "--prefill-tokens", "TOKENS", kSized, "prompt tokens admitted in one step")),

      named(real([](RunConfig& c) -> auto& { return c.sampling.temperature; }, 0, true, 100),
            "sampling.temperature", "--temperature", "T", Commands(generate), "how freely tokens are drawn; 0: always the likeliest"),
      named(integer([](RunConfig& c) -> auto& { return c.sampling.top_k; }, 0, kIds),
            "sampling.top_k", "--top-k", "K", Commands(generate), "draw from the K likeliest tokens; 0: all"),
      named(real([](RunConfig& c) -> auto& { return c.sampling.top_p; }, 0, false, 1),
            "sampling.top_p", "--top-p", "P", Commands(generate), "draw from the likeliest tokens that hold P of the probability; 1: all"),
      named(real([](RunConfig& c) -> auto& { return c.sampling.min_p; }, 0, true, 1),
            "sampling.min_p", "--min-p", "P", Commands(generate), "leave out tokens below P times the likeliest one's probability; 0: none"),
      named(real([](RunConfig& c) -> auto& { return c.sampling.repetition_penalty; }, 0, false, 100),
            "sampling.repetition_penalty", "--repetition-penalty", "X", Commands(generate), "above 1: weakens tokens that have occurred; 1: none"),
      named(integer([](RunConfig& c) -> auto& { return c.seed; }, 0, std::numeric_limits<uint64_t>::max()),
            "seed", "--seed", "N", Commands(generate, bench), "of draws (with a line's id it fixes that line's), and of synthetic weights and their prompts"),

      named(integer([](RunConfig& c) -> auto& { return c.max_new_tokens; }, 1, kTokens),
            "max_new_tokens", "--max-new-tokens", "N", Commands(generate), "tokens to generate for a line that does not say its own"),
      named(toggle([](RunConfig& c) -> auto& { return c.ignore_eos; }),
            "ignore_eos", "--ignore-eos", "", Commands(generate), "go on after an end-of-text token"),
      named(texts([](RunConfig& c) -> auto& { return c.stop; }, "non-empty texts", is_not_empty, false),
            "stop", "--stop", "TEXT", Commands(generate), "end a row where this text appears; may be given several times"),
      named(integers([](RunConfig& c) -> auto& { return c.stop_ids; }, 0, kIds, true),
            "stop_ids", "--stop-ids", "ID,...", Commands(generate), "end a row at one of these token ids"),
      named(toggle([](RunConfig& c) -> auto& { return c.chat; }),
            "chat", "--chat", "", Commands(generate), "the prompt is a user's message: render the model's chat template"),
      named(text([](RunConfig& c) -> auto& { return c.system; }, "a non-empty text"),
            "system", "--system", "TEXT", Commands(generate), "with --chat: the system message"),
      named(integer([](RunConfig& c) -> auto& { return c.logprobs; }, 0, 20),
            "logprobs", "--logprobs", "N", Commands(generate), "also report the N likeliest tokens at each place"),
      named(toggle([](RunConfig& c) -> auto& { return c.report_kept; }),
            "report_kept", "--report-kept", "", Commands(generate), "also report the positions in the cache at the end"),

      same_rows(named(integer([](RunConfig& c) -> auto& { return c.threads; }, 0, 1024),
            "threads", "--threads", "N", kMachine, "threads that compute; 0: one for each core this process may use")),
      named(choice([](RunConfig& c) -> auto& { return c.isa; }, {"generic", "avx2", "avx512", "avx512-bf16", "amx"}),
            "isa", "--isa", "NAME", kMachine, "a lower instruction path: generic, avx2, avx512 or avx512-bf16; or amx, which is off by default"),
      named(text([](RunConfig& c) -> auto& { return c.device; }, "the name of a backend"),
            "device", "--device", "NAME", kMachine, "the backend, or backend:number for one of its devices; auto, the default: the best usable one"),
      same_rows(named(toggle([](RunConfig& c) -> auto& { return c.quiet; }),
            "quiet", "--quiet", "", kAll, "nothing on standard error but errors")),

      same_rows(named(text([](RunConfig& c) -> auto& { return c.trace; }, "the path of a file"),
            "trace", "--trace", "FILE.json", kRuns, "write what each lane did when, for Chrome's trace viewer; for short runs")),

      named(integers([](RunConfig& c) -> auto& { return c.bench.prompt_len; }, 1, kTokens, false),
            "bench.prompt_len", "--prompt-len", "N,...", Commands(bench), "tokens of each prompt"),
      named(integers([](RunConfig& c) -> auto& { return c.bench.output_len; }, 1, kTokens, false),
            "bench.output_len", "--output-len", "N,...", Commands(bench), "tokens generated in each row"),
      named(integers([](RunConfig& c) -> auto& { return c.bench.batch; }, 1, 65536, false),
            "bench.batch", "--batch", "N,...", Commands(bench), "rows that run together"),
      named(texts([](RunConfig& c) -> auto& { return c.bench.policy; }, "policies: " + policies, is_policy, true),
            "bench.policy", "--policy", "NAME,...", Commands(bench), "the policies to compare: " + policies),
      named(budgets([](RunConfig& c) -> auto& { return c.bench.budget; }),
            "bench.budget", "--budget", "SIZE,...", Commands(bench), "of every policy but full: 204, 20% or 20%p"),
      named(placements(), "bench.placement", "--placement", "HOW", Commands(bench),
            "the placements to compare, each auto or six percentages as in 20,80,0,100,0,100; may be given several times"),
      named(integer([](RunConfig& c) -> auto& { return c.bench.warmup; }, 0, 1000),
            "bench.warmup", "--warmup", "N", Commands(bench), "runs of each case before those that count"),
      named(integer([](RunConfig& c) -> auto& { return c.bench.repeats; }, 1, 1000),
            "bench.repeats", "--repeats", "N", Commands(bench), "runs of each case, taken in turns"),
      named(toggle([](RunConfig& c) -> auto& { return c.bench.agreement; }),
            "bench.agreement", "--agreement", "", Commands(bench), "compare each policy's choices with the full cache's"),
      named(text([](RunConfig& c) -> auto& { return c.bench.text; }, "the path of a text file"),
            "bench.text", "--text", "FILE", Commands(bench), "where prompts are cut from; default: a text of its own"),
      named(text([](RunConfig& c) -> auto& { return c.bench.json; }, "a path"),
            "bench.json", "--json", "FILE", Commands(bench), "write all results as one JSON document; earlier ones are replaced"),
      named(text([](RunConfig& c) -> auto& { return c.bench.csv; }, "a path"),
            "bench.csv", "--csv", "FILE", Commands(bench), "write one line a case; earlier results are replaced"),
      named(text([](RunConfig& c) -> auto& { return c.bench.profile; }, "the path of a profile"),
            "bench.profile", "--profile", "FILE", Commands(bench), "of this machine: its prediction stands beside what is measured"),

      named(integer([](RunConfig& c) -> auto& { return c.inspect.batch; }, 1, 65536),
            "inspect.batch", "--batch", "N", Commands(inspect), "rows to estimate memory for"),
      named(integer([](RunConfig& c) -> auto& { return c.inspect.length; }, 0, kTokens),
            "inspect.length", "--length", "N", Commands(inspect), "prompt + output tokens of each row; 0: the model's limit"),
      named(integer([](RunConfig& c) -> auto& { return c.inspect.prompt_len; }, 0, kTokens),
            "inspect.prompt_len", "--prompt-len", "N", Commands(inspect), "how many of them are the prompt; 0: all but one"),
      named(toggle([](RunConfig& c) -> auto& { return c.inspect.json; }),
            "inspect.json", "--json", "", Commands(inspect), "one JSON document instead of a table"),
      named(toggle([](RunConfig& c) -> auto& { return c.inspect.devices; }),
            "inspect.devices", "--devices", "", Commands(inspect), "what this machine can compute on, and why not on the rest"),

      named(text([](RunConfig& c) -> auto& { return c.profile.output; }, "a path"),
            "profile.output", "--output", "FILE", Commands(Command::profile), "where the profile goes; default: standard output"),
      named(text([](RunConfig& c) -> auto& { return c.profile.folder; }, "the path of a folder"),
            "profile.folder", "--folder", "DIR", Commands(Command::profile), "on the disk to measure: where the models are"),

      named(text([](RunConfig& c) -> auto& { return c.plan.profile; }, "the path of a profile"),
            "plan.profile", "--profile", "FILE", Commands(Command::plan), "of the machine to plan for, from 'hydrant profile'"),
      named(integer([](RunConfig& c) -> auto& { return c.plan.prompt_len; }, 1, kTokens),
            "plan.prompt_len", "--prompt-len", "N", Commands(Command::plan), "tokens of each prompt"),
      named(integer([](RunConfig& c) -> auto& { return c.plan.output_len; }, 1, kTokens),
            "plan.output_len", "--output-len", "N", Commands(Command::plan), "tokens generated in each row"),
      named(integer([](RunConfig& c) -> auto& { return c.plan.rows; }, 0, 1 << 20),
            "plan.rows", "--rows", "N", Commands(Command::plan), "rows of the job; 0: as many as run together"),
      named(text([](RunConfig& c) -> auto& { return c.plan.policy; }, "one of " + policies, is_policy),
            "plan.policy", "--policy", "NAME", Commands(Command::plan), "which tokens stay: " + policies),
      named(budgets([](RunConfig& c) -> auto& { return c.plan.budget; }),
            "plan.budget", "--budget", "SIZE,...", Commands(Command::plan), "of every policy but full: 204, 20% or 20%p; of several each is planned"),
      named(toggle([](RunConfig& c) -> auto& { return c.plan.explain; }),
            "plan.explain", "--explain", "", Commands(Command::plan), "show what the predicted times are made of"),
      named(text([](RunConfig& c) -> auto& { return c.plan.output; }, "a path"),
            "plan.output", "--output", "FILE", Commands(Command::plan), "write the plan as a configuration for generate and bench; an earlier plan is replaced"),
  };
}
// clang-format on

}  // namespace

std::string_view name(Command command) {
  constexpr std::array<std::string_view, size_t(Command::count)> kNames{
      "generate", "score", "tokenize", "inspect", "bench", "validate", "profile", "plan"};
  return kNames[size_t(command)];
}

const std::vector<Key>& config_keys() {
  static const std::vector<Key> list = make();
  return list;
}

}  // namespace hydrant
