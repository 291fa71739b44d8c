// calls.cpp -- times the calls of calls.py in C++: a worker's lookups and pushes, and empty closures.
//
//   perf_calls [--capstan-...]    prints one line "name: seconds" per case, the median time of a call
//
// Values are verified before anything is timed. perf/python/rates.py runs both programs alternately.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "capstan/capstan.hpp"

namespace cs = capstan;

namespace {

constexpr std::int64_t kRows = 1'000'000, kWidth = 64;
constexpr std::size_t kIds = 8192;
constexpr int kSets = 8, kCalls = 200, kClosures = 20'000;

using Named = std::pair<std::string, double>;

double seconds_of(const std::function<void()>& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

std::vector<std::vector<std::int64_t>> ids_in_sets() {
  std::mt19937_64 random(1);
  std::vector<std::vector<std::int64_t>> sets(kSets, std::vector<std::int64_t>(kIds));
  for (auto& ids : sets) {
    for (auto& id : ids) id = static_cast<std::int64_t>(random() % kRows);
  }
  return sets;
}

/// Row r has the value r % 1000 in every column; a push of -1 adds 1.
std::vector<Named> measure(cs::Variable<float> table) {
  const auto sets = ids_in_sets();
  const std::vector<float> gradient(kIds * kWidth, -1.0F);
  std::vector<float> out(kIds * kWidth);
  for (const auto& ids : sets) {
    const cs::Rows<float> rows = table.lookup(ids);
    for (std::size_t i = 0; i < kIds; ++i) {
      if (rows[i][0] != static_cast<float>(ids[i] % 1000) || rows[i][kWidth - 1] != rows[i][0]) {
        throw cs::Error(cs::Code::internal, "wrong rows");
      }
    }
  }
  const auto timed = [&](const char* name, const auto& call) {
    std::vector<double> seconds;
    for (int i = -kSets; i < kCalls; ++i) {
      const auto& ids = sets[static_cast<std::size_t>(i + kSets) % kSets];
      const double one = seconds_of([&] { call(ids); });
      if (i >= 0) seconds.push_back(one);
    }
    return Named(name, median(std::move(seconds)));
  };
  std::vector<Named> all;
  all.push_back(timed("lookup", [&](const auto& ids) { (void)table.lookup(ids); }));
  all.push_back(timed("lookup, out", [&](const auto& ids) { table.lookup(ids, std::span(out)); }));
  all.push_back(timed("push and flush", [&](const auto& ids) {
    table.push(ids, gradient);
    table.flush();
  }));
  return all;
}

void nothing() {}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app("Times lookups, pushes and empty closures, like perf/python/calls.py", "perf_calls");
  cs::Cluster cluster = cs::Cluster::join(argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;  // 0 after --help
  }
  if (cluster.role() != cs::Role::coordinator) return cs::Server(cluster).join();
  cs::ParameterServerStrategy strategy(cluster);
  auto scope = strategy.scope();
  const cs::Variable<float> table("table", cs::Shape{kRows, kWidth}, {},
                                  {.optimizer = cs::optimizers::SGD{1}});
  std::vector<float> values(kRows * kWidth);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i / kWidth % 1000);
  table.assign(values);
  cs::ClusterCoordinator coordinator(strategy);
  for (const auto& [name, seconds] : coordinator.schedule<&measure>(table).fetch()) {
    std::printf("%s: %.9f\n", name.c_str(), seconds);
  }
  const auto empty = [&] {
    for (int i = 0; i < kClosures; ++i) coordinator.schedule<&nothing>();
    coordinator.join();
  };
  empty();
  std::printf("empty closure of many: %.9f\n", seconds_of(empty) / kClosures);
  std::vector<double> single;
  for (int i = 0; i < 500; ++i)
    single.push_back(seconds_of([&] { coordinator.schedule<&nothing>().fetch(); }));
  std::printf("one closure: %.9f\n", median(std::move(single)));
  return 0;
} catch (const cs::Error& error) {
  std::fprintf(stderr, "perf_calls: %s\n", error.what());
  return 1;
}
