// top.cpp -- queries the join listener once a second.
#include "launch/top.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/json.hpp"
#include "capstan/error.hpp"
#include "cluster/bootstrap/connect_to_job.hpp"
#include "launch/command_line.hpp"
#include "launch/running_job.hpp"
#include "launch/top_table.hpp"
#include "launch/training_epochs.hpp"

namespace capstan::launch {
namespace {

constexpr std::chrono::seconds kQueryTimeout{5};
constexpr std::chrono::seconds kRefreshInterval{1};
/// The first query makes the coordinator start polling its ranks; a rate needs two samples.
constexpr int kMaxQueries = 5;
constexpr std::string_view kClearScreen = "\x1b[H\x1b[2J";

nlohmann::json ask(const cluster::RunFile& file) {
  const auto deadline = std::chrono::steady_clock::now() + kQueryTimeout;
  const cluster::JoinAnswer answer =
      cluster::ask_join_listener(file.address, file.token, cluster::JoinRequest::metrics, {}, deadline);
  if (answer.code != Code::ok) throw Error(answer.code, answer.message);
  return parse_json(answer.message, "the reply of the coordinator", Code::data_loss);
}

Screen screen_of_terminal() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {size.ws_col, size.ws_row};
}

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  if (std::fflush(stdout) != 0) throw Error(Code::resource_exhausted, "cannot write to standard output");
}

/// Returns the progress of `capstan train`. The number of epochs of other programs is unknown.
EpochProgress progress_of(const cluster::RunFile& file) {
  std::vector<const char*> words;
  for (const std::string& word : file.arguments) words.push_back(word.c_str());
  std::vector<std::string> variables;
  for (const auto& [name, value] : file.environment) variables.push_back(name + "=" + value);
  std::vector<const char*> environment;
  for (const std::string& variable : variables) environment.push_back(variable.c_str());
  environment.push_back(nullptr);
  if (std::filesystem::path(file.program).filename() != "capstan") return EpochProgress();
  try {
    const CommandLine line =
        parse_command_line(static_cast<int>(words.size()), words.data(), environment.data());
    return EpochProgress(training_epochs(line), line.settings.flag("resume"));
  } catch (const Error&) {
    return EpochProgress();  // for example, this host or directory does not have the TOML file
  }
}

int print_once(const cluster::RunFile& file) {
  nlohmann::json metrics = ask(file);
  for (int query = 1; query < kMaxQueries && !has_fresh_rates(metrics); ++query) {
    std::this_thread::sleep_for(kRefreshInterval);
    metrics = ask(file);
  }
  print(top_table(metrics, Screen{}, progress_of(file).text(metrics)));
  return 0;
}

}  // namespace

int show_top(const std::string& run_dir, bool once) {
  const cluster::RunFile file = run_file_of(run_dir);
  if (once || ::isatty(STDOUT_FILENO) != 1) return print_once(file);
  EpochProgress progress = progress_of(file);
  for (bool first = true;; first = false) {
    nlohmann::json metrics;
    try {
      metrics = ask(file);
    } catch (const Error& error) {
      if (first || error.code() != Code::unavailable) throw;
      print("the job has ended\n");
      return 0;
    }
    print(std::string(kClearScreen) + top_table(metrics, screen_of_terminal(), progress.text(metrics)));
    std::this_thread::sleep_for(kRefreshInterval);
  }
}

}  // namespace capstan::launch
