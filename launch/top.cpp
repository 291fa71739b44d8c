// top.cpp -- asks the join listener once a second.
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

constexpr std::chrono::seconds kAnswerWithin{5};
constexpr std::chrono::seconds kBetweenTables{1};
/// Who looks for the first time makes the coordinator ask its ranks; two answers make a rate.
constexpr int kMostLooks = 5;
constexpr std::string_view kClearScreen = "\x1b[H\x1b[2J";

nlohmann::json ask(const cluster::RunFile& file) {
  const auto deadline = std::chrono::steady_clock::now() + kAnswerWithin;
  const cluster::JoinAnswer answer =
      cluster::ask_join_listener(file.address, file.token, cluster::JoinRequest::metrics, {}, deadline);
  if (answer.code != Code::ok) throw Error(answer.code, answer.message);
  return parse_json(answer.message, "the coordinator's answer", Code::data_loss);
}

Screen screen_of_terminal() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {size.ws_col, size.ws_row};
}

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  if (std::fflush(stdout) != 0) throw Error(Code::resource_exhausted, "standard output: cannot be written");
}

int print_once(const cluster::RunFile& file) {
  nlohmann::json figures = ask(file);
  for (int look = 1; look < kMostLooks && !has_fresh_rates(figures); ++look) {
    std::this_thread::sleep_for(kBetweenTables);
    figures = ask(file);
  }
  print(top_table(figures, Screen{}));
  return 0;
}

}  // namespace

int show_top(const std::string& run_dir, bool once) {
  const cluster::RunFile file = run_file_of(run_dir);
  if (once || ::isatty(STDOUT_FILENO) != 1) return print_once(file);
  for (bool first = true;; first = false) {
    nlohmann::json figures;
    try {
      figures = ask(file);
    } catch (const Error& error) {
      if (first || error.code() != Code::unavailable) throw;
      print("the job is over\n");
      return 0;
    }
    print(std::string(kClearScreen) + top_table(figures, screen_of_terminal()));
    std::this_thread::sleep_for(kBetweenTables);
  }
}

}  // namespace capstan::launch
