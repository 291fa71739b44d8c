// options.cpp -- parses roles as settings, so that their limits and errors are those of the started program.
#include "launch/run/options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <csignal>
#include <utility>

#include "base/settings.hpp"
#include "base/settings_value.hpp"
#include "capstan/error.hpp"
#include "launch/run/launch_context.hpp"

namespace capstan::launch::run {
namespace {

constexpr Setting kTimeout{
    .name = "timeout", .group = "", .kind = SettingKind::duration, .initial = "", .help = "", .minimum = 1};
constexpr std::array<std::pair<std::string_view, Launcher>, 3> kLaunchers{
    {{"mpirun", Launcher::mpirun}, {"srun", Launcher::srun}, {"local", Launcher::local}}};

Launcher launcher_of(const std::string& name) {
  if (name.empty()) return Launcher::automatic;
  for (const auto& [known, launcher] : kLaunchers) {
    if (known == name) return launcher;
  }
  throw Error(Code::invalid_argument, fmt::format("--launcher {}: expected mpirun, srun or local", name));
}

std::chrono::milliseconds timeout_of(const std::string& text) {
  const auto value = settings::parse(kTimeout, text);
  if (value) return std::chrono::milliseconds(std::get<std::int64_t>(*value));
  throw Error(Code::invalid_argument,
              fmt::format("--timeout: expected {}, found \"{}\"", settings::allowed(kTimeout), text));
}

/// Value of the last `--name VALUE` or `--name=VALUE` in `words`; "" if there is none.
std::string option_in(const std::vector<std::string>& words, const std::string& name) {
  std::string value;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].starts_with(name + "=")) value = words[i].substr(name.size() + 1);
    if (words[i] == name && i + 1 < words.size()) value = words[i + 1];
  }
  return value;
}

/// The signal of --save-signal if `program` has a checkpoint directory, by an option, a variable or a TOML
/// file; else 0.
int save_signal_of(const std::vector<std::string>& program, Settings settings,
                   const Environment& environment) {
  const auto variable = environment.find("CAPSTAN_CONFIG");
  std::string config = option_in(program, "--config");
  if (config.empty() && variable != environment.end()) config = variable->second;
  try {
    if (!config.empty()) settings.load_file(config);
  } catch (const Error&) {
    return 0;  // the program reports it
  }
  const std::string directory = option_in(program, "--checkpoint-dir");
  if (directory.empty() && settings.text("checkpoint-dir").empty()) return 0;
  std::string name = option_in(program, "--save-signal");
  if (name.empty()) name = settings.text("save-signal");
  return name == "USR1" ? SIGUSR1 : name == "USR2" ? SIGUSR2 : 0;
}

}  // namespace

struct Options::Values {
  CLI::App* command = nullptr;
  std::string ps, workers, spares, launcher, timeout;
  std::string hosts, mpirun = "mpirun";
  bool evaluator = false, dry_run = false;
};

Options::Options(CLI::App& app) : values_(std::make_unique<Values>()) {
  Values& v = *values_;
  v.command = app.add_subcommand("run", "start a program on this machine, on hosts or in a Slurm job");
  CLI::App& run = *v.command;
  run.add_option("--ps", v.ps, "number of ps")
      ->default_str("1; with --hosts or in Slurm: value of the setting ps")
      ->type_name("N");
  run.add_option("--workers", v.workers, "number of workers")
      ->default_str("one per core; with --hosts or in Slurm: all other ranks")
      ->type_name("N");
  run.add_option("--spares", v.spares, "number of spare ranks, which replace dead ps")
      ->default_str("0")
      ->type_name("N");
  run.add_flag("--evaluator", v.evaluator, "add a rank that evaluates checkpoints");
  run.add_option("--hosts", v.hosts,
                 "host file with lines `n1 slots=4` or `n1:4`; one slot if no number is given")
      ->type_name("FILE");
  run.add_option("--launcher", v.launcher, "program that starts the ranks")
      ->default_str("mpirun; in Slurm srun if there is no mpirun or the job is heterogeneous")
      ->type_name("mpirun|srun|local");
  run.add_option("--mpirun", v.mpirun, "the mpirun to use, from Open MPI or MPICH")
      ->default_str("mpirun")
      ->type_name("FILE");
  run.add_flag("--dry-run", v.dry_run, "print the command without running it");
  run.add_option("--timeout", v.timeout,
                 "end the job after this time: SIGTERM, then SIGKILL after 10 s; exit code 124")
      ->default_str("none")
      ->type_name("TIME");
  for (CLI::Option* option : run.get_options()) {
    if (option->get_name() != "--help") option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }
}

Options::~Options() = default;

CLI::App& Options::command() { return *values_->command; }

Request Options::request(std::vector<std::string> program, const char* const* environment) const {
  const Values& v = *values_;
  Settings settings;
  settings.load_environment(environment);
  const auto set = [&settings](std::string_view name, const std::string& text) {
    if (!text.empty()) settings.set_from_flag(name, text);
  };
  set("ps", v.ps);
  set("workers", v.workers);
  set("spares", v.spares);
  if (v.evaluator) settings.set_from_flag("evaluator", "true");
  const auto count = [&settings](std::string_view name) -> std::optional<int> {
    const auto value = static_cast<int>(settings.integer(name));
    return value > 0 ? std::optional(value) : std::nullopt;
  };
  const std::string& role_map = settings.text("role-map");
  Request request;
  request.save_signal = save_signal_of(program, settings, environment_of(environment));
  request.program = std::move(program);
  request.hosts = v.hosts;
  request.mpirun = v.mpirun;
  request.launcher = launcher_of(v.launcher);
  request.dry_run = v.dry_run;
  if (!v.timeout.empty()) request.timeout = timeout_of(v.timeout);
  request.roles = {.ps = count("ps"),
                   .workers = count("workers"),
                   .spares = static_cast<int>(settings.integer("spares")),
                   .evaluator = settings.flag("evaluator"),
                   .replicas = settings.integer("replicas-of-ps") > 1,
                   .ps_per_host = role_map == "ps-per-node" || role_map == "local",
                   .roles_variable = !settings.text("roles").empty()       ? "CAPSTAN_ROLES"
                                     : !settings.text("role-file").empty() ? "CAPSTAN_ROLE_FILE"
                                                                           : ""};
  if (!request.roles.roles_variable.empty() &&
      (!v.ps.empty() || !v.workers.empty() || !v.spares.empty() || v.evaluator)) {
    throw Error(Code::invalid_argument,
                fmt::format("{} is set and overrides --ps, --workers, --spares and --evaluator; unset it or "
                            "omit these options",
                            request.roles.roles_variable));
  }
  if (request.program.empty()) {
    throw Error(Code::invalid_argument,
                "run: no program, expected one after --: capstan run --workers 4 -- capstan train kge");
  }
  return request;
}

}  // namespace capstan::launch::run
