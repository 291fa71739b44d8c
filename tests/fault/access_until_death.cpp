// access_until_death.cpp -- workers that read and push continuously until their ps dies, and record the time.
//
//   mpirun -np 4 access_until_death DIRECTORY lookup flush --capstan-ps=1 --capstan-max-inflight-per-worker=1
//
// Starts one worker for each access in the arguments. The worker creates NAME.started in DIRECTORY once the
// access works, and NAME.report after it has failed. Times are of CLOCK_MONOTONIC, as time.monotonic_ns().
#include <algorithm>
#include <capstan/capstan.hpp>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/cancellation_request.hpp"
#include "support/poll.hpp"

namespace {

namespace cs = capstan;
using namespace std::chrono_literals;

constexpr std::int64_t kRows = 8192;
constexpr std::int64_t kWidth = 64;
constexpr std::size_t kIds = 512;
constexpr std::int64_t kStarted = 50;       // accesses before NAME.started is created
constexpr std::int64_t kMoreTries = 50;     // accesses after the first failure
constexpr auto kTimeout = 100s;             // ends the job if the test does not
constexpr auto kWorkersWriteReports = 60s;  // a report takes some milliseconds

std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// Creates the file atomically: a reader sees all of its content.
void write_file(const std::filesystem::path& path, const std::string& text) {
  const std::filesystem::path unfinished = path.string() + "~";
  std::ofstream(unfinished) << text;
  std::filesystem::rename(unfinished, path);
}

std::function<void()> access_by_name(const std::string& name, const cs::Variable<float>& w) {
  std::vector<std::int64_t> ids(kIds);
  for (std::size_t i = 0; i < kIds; ++i) ids[i] = static_cast<std::int64_t>(i) * 7919 % kRows;
  std::vector<float> rows(kIds * kWidth, 0.5F);
  std::vector<float> all(static_cast<std::size_t>(kRows * kWidth), 0.5F);
  using cs::ReadMode;
  const std::map<std::string, std::function<void()>> accesses{
      {"lookup", [=]() mutable { w.lookup(ids, rows); }},
      {"lookup_consistent", [=]() mutable { w.lookup(ids, rows, ReadMode::consistent); }},
      {"pull", [=]() mutable { w.pull(0, all); }},
      {"pull_consistent", [=]() mutable { w.pull(0, all, ReadMode::consistent); }},
      {"push", [=] { w.push(ids, rows); }},
      {"push_dense", [=] { w.push_dense(all); }},
      {"flush", [=] { w.push(ids, rows), w.flush(); }}};
  return accesses.at(name);
}

/// Repeats the access until it throws, and kMoreTries times after that, to check that it keeps throwing.
void access_until_it_fails(std::string directory, std::string name, cs::Variable<float> w) {
  // The coordinator may notice the death first and cancel this function. Each access must notice it by
  // itself.
  const cs::CancellationScope not_cancelled(nullptr);
  const auto access = access_by_name(name, w);
  const std::filesystem::path place = std::filesystem::path(directory) / name;
  std::int64_t good = 0;
  std::int64_t last_good_began = 0;
  std::int64_t failed_at = 0;
  int code = 0;
  std::string what = "nothing";
  const auto give_up = std::chrono::steady_clock::now() + kTimeout;
  while (failed_at == 0 && std::chrono::steady_clock::now() < give_up) {
    const std::int64_t began = now_ns();
    try {
      access();
      last_good_began = began;
      if (++good == kStarted) write_file(place.string() + ".started", "");
    } catch (const cs::Error& error) {
      failed_at = now_ns();
      code = static_cast<int>(error.code());
      what = error.what();
    }
  }
  std::int64_t good_afterwards = 0;
  for (std::int64_t i = 0; i < kMoreTries; ++i) {
    try {
      access();
      ++good_afterwards;
    } catch (const cs::Error&) {
      std::this_thread::sleep_for(1ms);  // spreads the tries that follow the first error over time
    }
  }
  write_file(place.string() + ".report",
             "good " + std::to_string(good) + "\nlast_good_began " + std::to_string(last_good_began) +
                 "\nfailed_at " + std::to_string(failed_at) + "\ncode " + std::to_string(code) +
                 "\ngood_afterwards " + std::to_string(good_afterwards) + "\nwhat " + what + "\n");
}

/// Keeps the job alive until the workers have written their reports: it ends with the coordinator.
void wait_for_reports(const std::filesystem::path& directory, const std::vector<std::string>& names) {
  cs::poll_until(
      [&] {
        return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
          return std::filesystem::exists(directory / (name + ".report"));
        });
      },
      kWorkersWriteReports);
}

}  // namespace

int main(int argc, char** argv) {
  const cs::Cluster cluster = cs::Cluster::join(argc, argv);
  if (cluster.role() != cs::Role::coordinator) return cs::Server(cluster).join();
  const std::string directory = argv[1];
  const std::vector<std::string> names(argv + 2, argv + argc);
  if (static_cast<int>(names.size()) != cluster.count(cs::Role::worker)) return 2;

  cs::ParameterServerStrategy strategy(cluster);
  const auto scope = strategy.scope();
  const cs::Variable<float> w("w", cs::Shape{kRows, kWidth}, cs::initializers::constant(1),
                              {cs::optimizers::SGD{0.01}});
  cs::ClusterCoordinator coordinator(strategy);
  try {
    for (const std::string& name : names) coordinator.schedule<&access_until_it_fails>(directory, name, w);
    coordinator.join();
  } catch (const cs::Error& error) {
    std::fprintf(stderr, "coordinator: %s\n", error.what());
    wait_for_reports(directory, names);
    return error.code() == cs::Code::unavailable ? 4 : 1;
  }
  return 1;  // no ps died
}
