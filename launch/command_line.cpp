// command_line.cpp -- the subcommands of `capstan`; their options come from the table of settings.
#include "launch/command_line.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "base/settings.hpp"
#include "capstan/error.hpp"
#include "launch/checkpoint/command_line.hpp"
#include "launch/doctor/command_line.hpp"
#include "launch/help/completions.hpp"
#include "launch/help/describe.hpp"
#include "launch/help/help_text.hpp"
#include "launch/help/markdown.hpp"
#include "launch/kge/command_line.hpp"
#include "launch/plan/command_line.hpp"
#include "launch/report/command_line.hpp"
#include "launch/run/options.hpp"
#include "launch/serve/command_line.hpp"
#include "launch/version.hpp"

namespace capstan::launch {
namespace {

using Options = std::map<std::string_view, const CLI::Option*>;  // by name of the setting

constexpr std::string_view kConfigVariable = "CAPSTAN_CONFIG";
constexpr int kMaxFiles = 1 << 20;  // maximum number of words after one option

std::string_view placeholder(SettingKind kind) {
  switch (kind) {
    case SettingKind::integer:
      return "N";
    case SettingKind::real:
      return "X";
    case SettingKind::bytes:
      return "SIZE";
    case SettingKind::duration:
      return "TIME";
    default:
      return "TEXT";
  }
}

std::string default_of(const Setting& setting) {
  if (setting.kind == SettingKind::flag) return setting.initial == "true" ? "on" : "";
  return std::string(setting.initial_means.empty() ? setting.initial : setting.initial_means);
}

/// A subcommand of `capstan train`.
struct Trainer {
  std::string_view program;
  std::string_view description;
};
constexpr std::array<Trainer, 9> kTrainers{{
    {"kge", "train knowledge-graph embeddings: TransE, DistMult, ComplEx, RESCAL or RotatE"},
    {"lr", "train logistic regression on libsvm, Criteo or CSV files"},
    {"fm", "train a factorization machine on libsvm, Criteo or CSV files"},
    {"mf", "train a matrix factorization on ratings of items by users (MovieLens)"},
    {"mlp", "train a multilayer perceptron on IDX images (MNIST)"},
    {"deepfm", "train DeepFM on Criteo files"},
    {"dlrm", "train DLRM on Criteo files"},
    {"dcn", "train DCN-v2 on Criteo files"},
    {"word2vec", "train word embeddings on text files: skip-gram with negative sampling"},
}};

bool accepts(std::string_view program, const Setting& setting) {
  const auto groups = groups_of(program);
  return setting.group == "runtime" || std::find(groups.begin(), groups.end(), setting.group) != groups.end();
}

/// Adds an option for each setting of `program`, or for every setting if `program` is empty. A flag takes no
/// value (--resume, --no-resume). A list of files takes several words, except in `train kge`.
Options add_settings(CLI::App& app, std::string_view program = {}) {
  Options options;
  for (const Setting& setting : Settings::table()) {
    if (!program.empty() && !accepts(program, setting)) continue;
    const std::string help(setting.help);
    CLI::Option* option = nullptr;
    if (setting.kind == SettingKind::flag) {
      option = app.add_flag(fmt::format("--{0},!--no-{0}", setting.name), help);
    } else {
      option = app.add_option(fmt::format("--{}", setting.name))->description(help);
      option->type_name(std::string(setting.choices.empty() ? placeholder(setting.kind) : setting.choices));
    }
    option->default_str(default_of(setting));
    const bool common = program.empty() || setting.group == "runtime";
    option->group(fmt::format("{} of {}", common ? help::kCommonGroup : "Options", setting.group));
    if (setting.list && !program.empty() && program != "kge") {
      option->expected(1, kMaxFiles)->type_name("FILE");
      option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    } else {
      option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    }
    options.emplace(setting.name, option);
  }
  return options;
}

/// Adds the options now if `eager`, else when the command is parsed: adding the options of all commands
/// takes CLI11 milliseconds.
void add_settings_if_named(CLI::App& app, Options& options, bool eager, std::string_view program = {}) {
  if (eager) {
    options = add_settings(app, program);
    return;
  }
  app.preparse_callback([&app, &options, program](std::size_t) { options = add_settings(app, program); });
}

std::string add_hint(std::string_view given, const std::vector<std::string>& known) {
  const std::string nearest = nearest_name(given, known);
  return nearest.empty() ? std::string() : fmt::format("; did you mean {}?", nearest);
}

/// Throws for `word`, the first one that no option and no subcommand consumed.
[[noreturn]] void throw_unknown_word(const CLI::App& command, const std::string& word) {
  if (!word.starts_with("-")) {
    std::vector<std::string> known;
    for (const CLI::App* sub : command.get_subcommands([](const CLI::App*) { return true; })) {
      known.push_back(sub->get_name());
    }
    throw Error(Code::invalid_argument,
                fmt::format("\"{}\": there is no such {}{}", word, known.empty() ? "argument" : "command",
                            add_hint(word, known)));
  }
  const std::string name = word.substr(0, word.find('='));
  std::vector<std::string> known;
  for (const CLI::Option* option : command.get_options([](const CLI::Option*) { return true; })) {
    for (const std::string& long_name : option->get_lnames()) known.push_back("--" + long_name);
  }
  throw Error(Code::invalid_argument,
              fmt::format("{}: there is no such option{}", name, add_hint(name, known)));
}

/// Rejects an option name in place of a value, as in `--batch --dim 3`, which CLI11 accepts.
void require_values(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options([](const CLI::Option*) { return true; })) {
    for (const std::string& value : option->results()) {
      if (!value.starts_with("--") || command.get_option_no_throw(value) == nullptr) continue;
      throw Error(Code::invalid_argument,
                  fmt::format("{}: the value is missing before {}", option->get_name(), value));
    }
  }
}

void reject_unknown_words(const CLI::App& command) {
  require_values(command);
  const auto words = command.remaining();
  if (words.empty()) return;
  if (command.get_name() == "run" && !words.front().starts_with("-")) {
    throw Error(Code::invalid_argument,
                fmt::format("run: unexpected argument \"{0}\"; put -- before the program: capstan run -- {0}",
                            words.front()));
  }
  throw_unknown_word(command, words.front());
}

Settings load_settings(const Options& options, const std::string& config, const char* const* environment) {
  Settings settings;
  settings.load_environment(environment);
  if (!config.empty()) {
    settings.load_file(config, "--config");
  } else {
    for (; *environment != nullptr; ++environment) {
      const std::string_view entry = *environment;
      const auto equals = std::min(entry.find('='), entry.size());
      if (entry.substr(0, equals) != kConfigVariable || equals + 1 >= entry.size()) continue;
      settings.load_file(entry.substr(equals + 1), kConfigVariable);
    }
  }
  for (const auto& [name, option] : options) {
    if (option->count() == 0) continue;
    const bool list = option->get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
    settings.set_from_flag(
        name, list ? fmt::format("{}", fmt::join(option->results(), ",")) : option->results().back());
  }
  return settings;
}

/// The command that was parsed last: "train kge" below "train".
const CLI::App& innermost(const CLI::App& command) {
  const auto parsed = command.get_subcommands();
  return parsed.empty() ? command : innermost(*parsed.front());
}

/// Throws the error, with a hint that names the command whose help the user needs.
[[noreturn]] void throw_with_help(const CLI::App& app, std::string_view message) {
  throw Error(Code::invalid_argument, fmt::format("{}\nhint: `{} --help` lists the options", message,
                                                  help::describe(innermost(app)).path));
}

/// `capstan help`: its options.
struct HelpOptions {
  std::vector<std::string> topic;
  std::string shell, share;
  bool all = false, markdown = false;

  CLI::App& add_to(CLI::App& app) {
    CLI::App& command = *app.add_subcommand("help", "print the help of a command");
    command.add_option("COMMAND", topic, "the command, such as train kge; without one, all commands")
        ->expected(0, kMaxFiles);
    command.add_flag("--all", all, "also list the settings that every job has");
    command.add_option("--completions", shell, "print the script that completes commands in this shell")
        ->allow_extra_args(false)
        ->type_name(std::string(help::kShells));
    command
        .add_option("--install", share, "write man pages and completions below DIR, such as /usr/local/share")
        ->type_name("DIR");
    command.add_flag("--markdown", markdown, "print docs/command_line.md");
    return command;
  }

  /// Throws Error(invalid_argument) for an unknown command or shell.
  CommandLine line(const CLI::App& app) const {
    const CLI::App* command = &app;
    for (const std::string& word : topic) {
      const auto subcommands =
          command->get_subcommands([&](const CLI::App* sub) { return sub->get_name() == word; });
      if (subcommands.empty()) throw_unknown_word(*command, word);
      command = subcommands.front();
    }
    if (!share.empty()) {
      return {.action = Action::install_help, .text = share, .pages = help::describe_all(app)};
    }
    std::string text;
    if (markdown) {
      text = help::markdown(help::describe_all(app));
    } else if (shell.empty()) {
      text = help::help_text(help::describe(*command), all, help::help_width());
    } else if (fmt::format("|{}|", help::kShells).find(fmt::format("|{}|", shell)) == std::string::npos) {
      throw Error(Code::invalid_argument, fmt::format("--completions {}: expected {}", shell, help::kShells));
    } else {
      text = help::completions(help::describe_all(app), shell);
    }
    return {.action = Action::print_text, .text = text};
  }
};

/// Index of the first "--" of `capstan run`, after which the program and its arguments follow; `argc` if
/// there is none.
int program_separator(int argc, const char* const* argv) {
  if (argc < 2 || std::string_view(argv[1]) != "run") return argc;
  const auto found = std::find(argv, argv + argc, std::string_view("--"));
  return static_cast<int>(std::distance(argv, found));
}

}  // namespace

CommandLine parse_command_line(int argc, const char* const* argv, const char* const* environment) {
  const int separator = program_separator(argc, argv);
  std::vector<std::string> program;
  for (int i = separator + 1; i < argc; ++i) program.emplace_back(argv[i]);
  argc = separator;
  CLI::App app("train on a parameter server, and manage its jobs and checkpoints", "capstan");
  app.require_subcommand(0, 1);  // in `capstan status run`, "run" is RUN_DIR, not a second command
  app.set_help_flag("-h,--help", "print this help and exit");
  app.set_help_all_flag("--help-all", "print all options and exit");
  const bool eager = argc > 1 && std::string_view(argv[1]) == "help";
  bool version = false;
  app.add_flag("--version", version, "print the versions of Capstan, MPI, UCX and HDF5");

  std::string config;
  const auto add_config = [&config](CLI::App& command) {
    command.add_option("--config", config, "TOML file with settings")
        ->default_str("$CAPSTAN_CONFIG")
        ->type_name("FILE");
  };
  CLI::App& train = *app.add_subcommand("train", "train a model");
  bool verbose = false;
  std::array<CLI::App*, kTrainers.size()> trainers{};
  std::array<Options, kTrainers.size()> trainer_options;
  for (std::size_t i = 0; i < kTrainers.size(); ++i) {
    trainers[i] =
        train.add_subcommand(std::string(kTrainers[i].program), std::string(kTrainers[i].description));
    add_config(*trainers[i]);
    trainers[i]->add_flag("-v,--verbose", verbose,
                          "log more, such as where each rank runs: --log-level debug");
    add_settings_if_named(*trainers[i], trainer_options[i], eager, kTrainers[i].program);
  }

  CLI::App& show =
      *app.add_subcommand("settings", "print every setting: value, default, unit, variable and help");
  bool markdown = false;
  show.add_flag("--markdown", markdown,
                "print the table of docs/settings.md, without the values of this run");
  bool transports = false;
  show.add_flag("--transports", transports,
                "print the available UCX transports and the route to a ps; under mpirun, from every rank to "
                "every ps")
      ->excludes("--markdown");
  add_config(show);
  Options show_options;
  add_settings_if_named(show, show_options, eager);

  std::string run_dir;
  const auto add_run_dir = [&run_dir](CLI::App& command) {
    command.add_option("RUN_DIR", run_dir, "the --run-dir of a running job")->required();
  };
  CLI::App& status = *app.add_subcommand("status", "print the state of a running job");
  add_run_dir(status);
  CLI::App& top = *app.add_subcommand("top", "show ranks, rates and queue of a running job, once a second");
  add_run_dir(top);
  bool once = false;
  top.add_flag("--once", once, "print one table and exit");
  CLI::App& trace = *app.add_subcommand("trace", "merge the traces of a job into one timeline");
  trace.add_option("RUN_DIR", run_dir, "the --run-dir of a job that ran with --trace")->required();
  CLI::App& join = *app.add_subcommand("join", "add a worker to a running job");
  add_run_dir(join);

  run::Options run(app);

  checkpoint::Request request;
  const std::vector<CLI::App*> checkpoint_commands = checkpoint::add_commands(app, request);
  const CLI::App& checkpoint = *checkpoint_commands.front();

  kge_model::Request kge_model_request;
  const std::vector<CLI::App*> kge_model_commands = kge_model::add_commands(app, kge_model_request);

  serve::Options serve(app);

  doctor::Request doctor_request;
  CLI::App& doctor = doctor::add_command(app, doctor_request);

  report::Request report_request;
  CLI::App& report = report::add_command(app, report_request);
  plan::Options plan(app);

  HelpOptions help_options;
  const CLI::App& help_command = help_options.add_to(app);

  // Unknown words are rejected below with a suggestion, which the message of CLI11 lacks.
  std::vector<CLI::App*> commands(trainers.begin(), trainers.end());
  commands.insert(commands.end(), {&show, &train, &status, &top, &trace, &join, &doctor, &report,
                                   &run.command(), &serve.command(), &plan.command(), &app});
  commands.insert(commands.end(), checkpoint_commands.begin(), checkpoint_commands.end());
  commands.insert(commands.end(), kge_model_commands.begin(), kge_model_commands.end());
  for (CLI::App* command : commands) command->allow_extras();
  try {
    app.parse(argc, const_cast<char**>(argv));
  } catch (const CLI::CallForHelp&) {
    return {.action = Action::print_text,
            .text = help::help_text(help::describe(innermost(app)), false, help::help_width())};
  } catch (const CLI::CallForAllHelp&) {
    return {.action = Action::print_text,
            .text = help::help_text(help::describe(innermost(app)), true, help::help_width())};
  } catch (const CLI::ParseError& error) {
    throw_with_help(app, error.what());
  }
  try {
    for (const CLI::App* command : commands) reject_unknown_words(*command);
    if (help_command.parsed()) return help_options.line(app);
  } catch (const Error& error) {
    throw_with_help(app, error.what());
  }

  if (version) return {.action = Action::print_text, .text = version_text()};
  if (show.parsed()) {
    const Action action = markdown     ? Action::print_settings_markdown
                          : transports ? Action::show_transports
                                       : Action::print_settings;
    return {.action = action, .settings = load_settings(show_options, config, environment)};
  }
  if (status.parsed()) return {.action = Action::show_status, .text = run_dir};
  // Requests that can throw are not in a braced return: GCC 12 would destroy its other members twice.
  if (run.command().parsed()) {
    CommandLine line{.action = Action::run};
    line.run = run.request(std::move(program), environment);
    return line;
  }
  if (doctor.parsed()) return {.action = Action::doctor, .doctor = std::move(doctor_request)};
  if (report.parsed()) return {.action = Action::report, .report = std::move(report_request)};
  if (top.parsed()) return {.action = Action::show_top, .text = run_dir, .once = once};
  if (trace.parsed()) return {.action = Action::merge_trace, .text = run_dir};
  if (join.parsed()) return {.action = Action::join, .text = run_dir};
  if (checkpoint.parsed()) {
    if (!checkpoint.get_subcommands().empty())
      return {.action = Action::checkpoint, .checkpoint = std::move(request)};
    throw_with_help(app, fmt::format("checkpoint: no subcommand, expected one of {}", checkpoint::verbs()));
  }
  if (kge_model_request.verb != kge_model::Verb::none)
    return {.action = Action::kge_model, .kge_model = std::move(kge_model_request)};
  if (serve.command().parsed()) {
    CommandLine line{.action = Action::serve};
    try {
      line.serve = serve.request();
    } catch (const Error& error) {
      throw_with_help(app, error.what());
    }
    return line;
  }
  if (plan.command().parsed()) {
    CommandLine line{.action = Action::plan};
    try {
      line.plan = plan.request();
    } catch (const Error& error) {
      throw_with_help(app, error.what());
    }
    return line;
  }
  for (const char* name : {"evaluate", "predict"}) {
    if (app.got_subcommand(name)) throw_with_help(app, fmt::format("{}: no program, expected kge", name));
  }
  for (std::size_t i = 0; i < kTrainers.size(); ++i) {
    if (!trainers[i]->parsed()) continue;
    Settings settings = load_settings(trainer_options[i], config, environment);
    if (verbose) settings.set_from_flag("log-level", "debug");
    return {.action = Action::train,
            .program = std::string(kTrainers[i].program),
            .settings = std::move(settings)};
  }
  throw_with_help(
      app, train.parsed()
               ? "train: no program, expected capstan train kge, lr, fm, mf, mlp, deepfm, dlrm, dcn or "
                 "word2vec"
               : "a command is missing, expected capstan train, run, doctor, report, plan, "
                 "settings, status, top, trace, join, checkpoint, evaluate, predict, "
                 "similar, serve or help");
}

}  // namespace capstan::launch
