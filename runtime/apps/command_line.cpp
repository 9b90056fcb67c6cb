#include "runtime/apps/command_line.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <sstream>

#include "runtime/apps/config_file.hpp"
#include "runtime/apps/json_text.hpp"
#include "runtime/apps/output.hpp"
#include "runtime/base/json.hpp"

namespace hydrant {
namespace {

struct About {
  const char *summary, *usage;
  const char* details;  // what goes in and comes out
  const char* example;
};

constexpr const char* kAboutKv =
    "KV memory is that of whole slots: each head's slots, and one for the token at work, rounded "
    "up "
    "to 16.\n";

constexpr std::array<About, size_t(Command::count)> kAbout{{
    {"write text after prompts", "--model PATH (--prompt TEXT | --prompts IN.jsonl)",
     "Each line of IN.jsonl: {\"prompt\" or \"prompt_token_ids\" or, with --chat, \"messages\"}, "
     "and if wanted\n  \"id\", \"max_new_tokens\", \"stop\", \"stop_ids\", \"seed\"; a row of "
     "results bears the line's id, else its number.\n",
     "hydrant generate --model SmolLM2-135M-Instruct --policy h2o --budget 20% --prompt 'Once upon "
     "a time'\n"
     "  hydrant generate --model model.gguf --prompts in.jsonl --output out.jsonl --config "
     "run.json"},
    {"log-probabilities of given continuations, token by token through the cache",
     "--model PATH (--input IN.jsonl | --perplexity FILE)",
     "Each line of IN.jsonl: {\"context\", \"continuation\"}, or both as \"..._token_ids\", and if "
     "wanted \"id\";\n  a row of results bears it, else the line's number.\n",
     "hydrant score --model model.gguf --input pairs.jsonl --output scores.jsonl --policy h2o "
     "--budget 20%\n"
     "  hydrant score --model model.gguf --perplexity book.txt --context 1024 --policy h2o "
     "--budget 204"},
    {"texts to token ids", "--model PATH --input IN.jsonl",
     "Each line of IN.jsonl: {\"text\"}, and if wanted \"id\", \"add_special\" (true);\n  a row of "
     "results bears "
     "the id, else the line's number.\n",
     "echo '{\"id\": 1, \"text\": \"Hello\"}' > in.jsonl; hydrant tokenize --model model.gguf "
     "--input in.jsonl"},
    {"what a model is and what memory a run of it takes", "(MODEL | --devices)", kAboutKv,
     "hydrant inspect model.gguf --batch 32 --length 1024 --policy h2o --budget 20%\n"
     "  hydrant inspect configs/models/opt-6.7b.json --batch 32    # a shape without weights"},
    {"speed, memory and agreement with the full cache", "(--model PATH | --synthetic SHAPE)",
     kAboutKv,
     "hydrant bench --model model.gguf --prompt-len 512 --output-len 512 --batch 1,32 --policy "
     "full,h2o "
     "--budget 20% --repeats 3\n"
     "  hydrant bench --synthetic opt-1.3b --batch 1,8 --placement auto --placement "
     "0,100,100,0,100,0"},
    {"check a configuration and print it with all defaults", "CONFIG",
     "Refuses what a command would refuse of the file before it reads weights. Keys that a command "
     "needs\nmay be missing: they can be flags.\n",
     "hydrant validate run.json"},
    {"measure what this machine takes for what runs are made of", "[--output FILE]",
     "Rates of memory, copies, disk, products and attention as JSON, within a minute. The disk is "
     "measured\nwith a file of 192 MiB that has no name. Other work on the machine makes them "
     "lower.\n",
     "hydrant profile --output machine.json --folder /models"},
    {"find where weights and caches go, and the batch, that are fastest",
     "--model PATH --profile FILE",
     "The model may be a config.json alone. Prints the plan, predicted seconds of each lane in a "
     "step, tokens\nper second, memory, and what comes next to it.\n",
     "hydrant plan --model model.gguf --profile machine.json --prompt-len 512 --output-len 512 \\\n"
     "    --memory-device 64MiB --policy h2o --budget 10%,20%,100% --output plan.json"},
}};

class Help final : public CLI::Formatter {
 public:
  explicit Help(const char* usage) : usage_(usage) {}
  std::string make_usage(const CLI::App*, std::string called) const override {
    return fmt::format("\nUsage: {} {} [FLAGS]\n", called, usage_);
  }

 private:
  const char* usage_;
};

// The flags' texts, once the command line has been understood.
using Given = std::map<const Key*, std::vector<std::string>>;

std::string group_of(const Key& key) {
  const size_t dot = key.path.find('.');
  return dot == key.path.npos ? "Options" : key.path.substr(0, dot);
}

// Notes what a flag was given; `called` is how the user spelled it.
void give(Given& given, const Key& key, const std::string& called,
          const std::vector<std::string>& texts) {
  if (!given.emplace(&key, texts).second || (texts.size() > 1 && !key.repeatable))
    fail(Fault::bad_config, "{}: given more than once", called);
}

CLI::callback_t taking(Given& given, const Key& key, const std::string& called) {
  return [&given, &key, called](const CLI::results_t& texts) {
    give(given, key, called, texts);
    return true;
  };
}

// "--no-x" is "--x=false", and "--no-x=false" is "--x".
CLI::callback_t taking_off(Given& given, const Key& key, const std::string& called) {
  return [&given, &key, called](CLI::results_t texts) {
    for (std::string& text : texts) {
      if (text != "true" && text != "false")
        fail(Fault::bad_config, "{}: must be true or false, not {}", called, shown(text));
      text = text == "true" ? "false" : "true";
    }
    give(given, key, texts.size() > 1 ? called : key.flag, texts);
    return true;
  };
}

// The key's meaning, and what holds when it is not given.
std::string help_of(const Key& key) {
  const Json value = key.write(RunConfig());
  if (value.is_null() || value == Json::array() || value == false) return key.help;
  if (value == true)
    return fmt::format("{} (on; --no-{} turns it off)", key.help, key.flag.substr(2));
  std::string text;
  for (const Json& e : value.is_array() ? value : Json::array({value}))
    text += (text.empty() ? "" : ",") + (e.is_string() ? e.get<std::string>() : e.dump());
  return fmt::format("{} ({})", key.help, text);
}

void add_flags(CLI::App& app, Command command, Given& given) {
  for (const Key& key : config_keys()) {
    if (!key.commands.has(command) || key.files_only.has(command)) continue;
    CLI::Option* option = nullptr;
    if (key.value.empty()) {
      const auto add = [&](const std::string& called, const CLI::callback_t& take) {
        return app.add_option(called, take, help_of(key))
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
            ->expected(0);
      };
      const std::string off = "--no-" + key.flag.substr(2);
      option = add(key.flag, taking(given, key, key.flag));
      add(off, taking_off(given, key, off))->group("");  // not listed
    } else {
      option = app.add_option(key.flag, taking(given, key, key.flag), help_of(key));
      option->option_text(key.value)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    }
    option->group(group_of(key));
  }
}

// The model of `inspect` stands without a flag.
void add_model_argument(CLI::App& app, Given& given) {
  for (const Key& key : config_keys())
    if (key.path == "model")
      app.add_option("MODEL", taking(given, key, "MODEL"),
                     key.help + ", or a config.json alone: a shape without weights");
}

// In the order that the parser wants: the last first. "--flag=" gives an empty value; the parser
// would take the next word for it.
std::vector<std::string> words_of(int argc, const char* const* argv) {
  std::vector<std::string> words;
  for (int i = 1; i < argc; i++) {
    words.push_back(argv[i]);
    std::string& word = words.back();
    for (const char* whole : {"--help", "--version"})
      if (word.starts_with(std::string(whole) + "="))
        fail(Fault::bad_config, "{}: takes no value", whole);
    if (!word.starts_with("--") || word.find('=') != word.size() - 1) continue;
    word.pop_back();
    words.push_back("");
  }
  std::reverse(words.begin(), words.end());
  return words;
}

// "generate, score": the commands that have the flag.
std::string commands_with(const std::string& flag) {
  std::string names;
  for (size_t c = 0; c < size_t(Command::count); c++) {
    const auto has = [&](const Key& key) {
      return key.flag == flag && key.commands.has(Command(c));
    };
    if (std::any_of(config_keys().begin(), config_keys().end(), has))
      names.append(names.empty() ? "" : ", ").append(name(Command(c)));
  }
  return names;
}

[[noreturn]] void refuse_extra(const CLI::App& app, const std::string& extra) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& flag : option->get_lnames()) known.push_back("--" + flag);
  for (const CLI::App* sub : app.get_subcommands({})) known.push_back(sub->get_name());
  const std::string word = extra.substr(0, extra.find('='));
  if (const std::string others = commands_with(word); !others.empty() && app.get_parent())
    fail(Fault::bad_config, "{}: no flag of {}, only of {}", word, app.get_name(), others);
  fail(Fault::bad_config, "{}: unknown {}{}; 'hydrant {}--help' lists what there is", word,
       extra.starts_with('-') ? "flag" : "argument", suggestion(word, known),
       app.get_parent() ? app.get_name() + " " : "");
}

}  // namespace

CommandLine parse_command_line(int argc, const char* const* argv) {
  CLI::App app("Text from large language models whose KV cache is evicted by the H2O policy.",
               "hydrant");
  app.set_version_flag("--version", "hydrant " HYDRANT_VERSION);
  app.allow_extras();
  app.formatter(std::make_shared<Help>("COMMAND"));
  app.footer(
      "'hydrant COMMAND --help' lists a command's flags, with what holds when they are not given "
      "in "
      "brackets, and\nshows an example. Exit codes: 0 done, 1 some lines failed, 2 bad input or "
      "configuration, 3 not enough memory,\n4 device or I/O failure, 130 interrupted.");

  Given given;
  std::string config_file;
  std::array<CLI::App*, size_t(Command::count)> subs{};
  for (size_t c = 0; c < subs.size(); c++) {
    CLI::App* sub = subs[c] = app.add_subcommand(std::string(name(Command(c))), kAbout[c].summary);
    add_flags(*sub, Command(c), given);
    if (Command(c) == Command::inspect) add_model_argument(*sub, given);
    const CLI::callback_t take_config = [&config_file](const CLI::results_t& texts) {
      if (texts.size() > 1) fail(Fault::bad_config, "--config: given more than once");
      config_file = texts.front();
      return true;
    };
    if (Command(c) == Command::validate)
      sub->add_option("CONFIG", take_config, "the file to check");
    else
      sub->add_option("--config", take_config, "a file with the same words as keys; flags win")
          ->option_text("FILE.json")
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    sub->allow_extras();
    sub->formatter(std::make_shared<Help>(kAbout[c].usage));
    sub->footer(fmt::format("{}\nExample:\n  {}", kAbout[c].details, kAbout[c].example));
  }

  CommandLine line;
  try {
    app.parse(words_of(argc, argv));
  } catch (const CLI::Success& e) {
    std::ostringstream text;
    line.exit = app.exit(e, text, text);
    Output("").write(text.str());
    return line;
  } catch (const CLI::ArgumentMismatch& e) {
    const std::string what = e.what();
    fail(Fault::bad_config, "{}: its value is missing", what.substr(0, what.find(':')));
  } catch (const CLI::ParseError& e) {
    fail(Fault::bad_config, "{}", e.what());
  }
  for (size_t c = 0; c < subs.size(); c++)
    if (subs[c]->parsed()) line.command = Command(c);
  for (const CLI::App* parsed :
       {static_cast<const CLI::App*>(&app),
        line.command == Command::count ? nullptr
                                       : static_cast<const CLI::App*>(subs[size_t(line.command)])})
    if (parsed && !parsed->remaining().empty()) refuse_extra(*parsed, parsed->remaining().front());
  if (line.command == Command::count)
    fail(Fault::bad_config,
         "a command is needed: generate, score, tokenize, inspect, bench, validate, profile or "
         "plan; "
         "see 'hydrant --help'");
  if (line.command == Command::validate && config_file.empty())
    fail(Fault::bad_config, "CONFIG: the file to check is needed");

  if (const char* isa = std::getenv("HYDRANT_ISA"); isa && *isa)
    for (const Key& key : config_keys())
      if (key.path == "isa" &&
          (key.commands.has(line.command) || line.command == Command::validate)) {
        key.read(line.config, isa, "HYDRANT_ISA");
        line.sources.add("isa", "HYDRANT_ISA");
      }
  for (const Key& key : config_keys())
    if (key.commands.has(line.command) && !key.files_only.has(line.command))
      line.sources.set_flag(key.path, key.flag);
  if (!config_file.empty()) read_config_file(config_file, line.config, line.sources);
  for (const auto& [key, texts] : given) read_flag(*key, texts, line.config, line.sources);
  std::vector<PlacementConfig>& placements = line.config.bench.placement;
  if (line.command == Command::bench && placements.size() == 1) {  // nothing to compare: the run's
    line.config.placement = placements.front();
    placements.clear();
  }
  return line;
}

}  // namespace hydrant
