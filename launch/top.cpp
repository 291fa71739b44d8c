// top.cpp -- queries the join listener once a second.
#include "launch/top.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "base/json.hpp"
#include "capstan/error.hpp"
#include "cluster/bootstrap/connect_to_job.hpp"
#include "launch/running_job.hpp"
#include "launch/top_table.hpp"

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

int print_once(const cluster::RunFile& file) {
  nlohmann::json metrics = ask(file);
  for (int query = 1; query < kMaxQueries && !has_fresh_rates(metrics); ++query) {
    std::this_thread::sleep_for(kRefreshInterval);
    metrics = ask(file);
  }
  print(top_table(metrics, Screen{}));
  return 0;
}

}  // namespace

int show_top(const std::string& run_dir, bool once) {
  const cluster::RunFile file = run_file_of(run_dir);
  if (once || ::isatty(STDOUT_FILENO) != 1) return print_once(file);
  for (bool first = true;; first = false) {
    nlohmann::json metrics;
    try {
      metrics = ask(file);
    } catch (const Error& error) {
      if (first || error.code() != Code::unavailable) throw;
      print("the job has ended\n");
      return 0;
    }
    print(std::string(kClearScreen) + top_table(metrics, screen_of_terminal()));
    std::this_thread::sleep_for(kRefreshInterval);
  }
}

}  // namespace capstan::launch
