// running_job.cpp -- queries the join listener of a job, or execs its program.
#include "launch/running_job.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "capstan/error.hpp"
#include "cluster/bootstrap/connect_to_job.hpp"

namespace capstan::launch {
namespace {

constexpr std::chrono::seconds kStatusTimeout{5};

}  // namespace

cluster::RunFile run_file_of(const std::string& run_dir) {
  try {
    return cluster::read_run_file(run_dir);
  } catch (const Error& error) {
    if (error.code() != Code::not_found) throw;
    throw Error(Code::not_found, fmt::format("no job runs in {}: {}", run_dir, error.what()));
  }
}

int show_status(const std::string& run_dir) {
  const cluster::RunFile file = run_file_of(run_dir);
  const auto deadline = std::chrono::steady_clock::now() + kStatusTimeout;
  const cluster::JoinAnswer answer =
      cluster::ask_join_listener(file.address, file.token, cluster::JoinRequest::status, {}, deadline);
  if (answer.code != Code::ok) throw Error(answer.code, answer.message);
  std::fputs(answer.message.c_str(), stdout);
  if (std::fflush(stdout) != 0) throw Error(Code::resource_exhausted, "cannot write to standard output");
  return 0;
}

void join_job(const std::string& run_dir) {
  const cluster::RunFile file = run_file_of(run_dir);
  // Resolved before chdir.
  const std::string absolute = std::filesystem::absolute(run_dir).string();
  for (const auto& [name, value] : file.environment) {
    // CAPSTAN_TESTS_* variables belong to the tests of Capstan, not to the job (docs/settings.md).
    if (!name.starts_with("CAPSTAN_TESTS_")) setenv(name.c_str(), value.c_str(), 0);
  }
  setenv("CAPSTAN_JOIN", absolute.c_str(), 1);
  setenv(cluster::kJobRunsVariable, "1", 1);
  if (chdir(file.directory.c_str()) != 0) {
    throw Error(Code::not_found, fmt::format("cannot enter the working directory of the job, {}: {}",
                                             file.directory, std::strerror(errno)));
  }
  std::fprintf(stderr, "capstan: joining the job in %s with the command: %s\n", absolute.c_str(),
               fmt::format("{}", fmt::join(file.arguments, " ")).c_str());
  std::vector<char*> words;
  for (const std::string& word : file.arguments) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execv(file.program.c_str(), words.data());
  throw Error(Code::not_found, fmt::format("cannot execute the program of the job, {}: {}", file.program,
                                           std::strerror(errno)));
}

}  // namespace capstan::launch
