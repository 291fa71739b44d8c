// perf_schedule.cpp -- rate of closures that are empty, count on a ps, return results or have 1 KiB
// arguments; latency of one closure; share of the workers' time that functions use.
//
// Bounds, from the file of --bounds: the round-trip time of `ucx_perftest -t ucp_am_lat`, and the message
// rate of `ucx_perftest -t ucp_am_bw`. For the share of time: 1.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <vector>

#include "perf/bench/program.hpp"
#include "perf/bench/statistics.hpp"

namespace capstan::perf {
namespace {

constexpr std::size_t kArgumentBytes = 1024;
constexpr const char* kRateBound = "message_rate";        // per second, by message size
constexpr const char* kLatencyBound = "message_latency";  // round trip in microseconds, by message size

int closures = 10'000;  // --closures

void empty(const Counter& done) { done.fetch_add(1); }
void nothing() {}
void count(const Counter& counter) { counter.add(1); }
std::int64_t twice(std::int64_t x) { return 2 * x; }
/// Busy-waits for a duration of wall-clock time.
void compute(std::int64_t nanoseconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(nanoseconds);
  while (std::chrono::steady_clock::now() < end) continue;
}
std::int64_t sum(const std::vector<std::uint8_t>& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}

/// Calls `body`, which runs `closures` closures, once as a warm-up and then repeatedly. Returns the seconds
/// of each repeated call.
template <class Body>
std::vector<double> samples(const Session& session, const Body& body) {
  std::vector<double> seconds;
  body();
  for (int i = 0; i < std::max(session.options.repeat, session.options.iters); ++i) {
    seconds.push_back(seconds_of(body));
  }
  return seconds;
}

void report_rate(const Session& session, const char* name, std::uint64_t bytes, bool verified,
                 const std::vector<double>& seconds) {
  Result result{name, name, bytes, "bytes", "closures/s"};
  result.verified = verified;
  result = rate_result(result, closures, seconds);
  result.bound = session.bounds.at(kRateBound, bytes);
  result.bound_name = session.bounds.by(kRateBound);
  session.report.add(result);
}

void empty_closures(const Session& session) {
  const Counter done("closures done");
  for (int i = 0; i < closures; ++i) session.coordinator.schedule<&empty>(done);
  session.coordinator.join();
  const bool verified = done.value() == closures;
  const auto seconds = samples(session, [&] {
    for (int i = 0; i < closures; ++i) session.coordinator.schedule<&nothing>();
    session.coordinator.join();
  });
  report_rate(session, "empty closures", 0, verified, seconds);
}

/// Each closure ends when the ps has applied its addition.
void counting_closures(const Session& session) {
  const Counter counter("counted");
  std::int64_t rounds = 0;
  const auto seconds = samples(session, [&] {
    for (int i = 0; i < closures; ++i) session.coordinator.schedule<&count>(counter);
    session.coordinator.join();
    ++rounds;
  });
  report_rate(session, "counting closures", 0, counter.value() == rounds * closures, seconds);
}

void one_closure(const Session& session) {
  constexpr int kSamplesPerIteration = 50;
  bool verified = true;
  std::vector<double> seconds;
  const int all = session.options.iters * session.options.repeat * kSamplesPerIteration;
  for (int i = -kSamplesPerIteration; i < all; ++i) {
    const double time = seconds_of([&] {
      verified = session.coordinator.schedule<&twice>(i).fetch() == 2 * std::int64_t{i} && verified;
    });
    if (i >= 0) seconds.push_back(time);
  }
  session.coordinator.join();
  Result result{"one closure, scheduled and fetched", "one closure", sizeof(std::int64_t), "bytes", "us"};
  result.verified = verified;
  result = time_result(result, 1e6, seconds);
  result.bound = session.bounds.at(kLatencyBound, result.size);
  result.bound_name = session.bounds.by(kLatencyBound);
  session.report.add(result);
}

void results_fetched(const Session& session) {
  bool verified = true;
  const auto seconds = samples(session, [&] {
    std::vector<RemoteValue<std::int64_t>> values;
    values.reserve(static_cast<std::size_t>(closures));
    for (int i = 0; i < closures; ++i) values.push_back(session.coordinator.schedule<&twice>(i));
    for (int i = 0; i < closures; ++i) {
      verified = values[static_cast<std::size_t>(i)].fetch() == 2 * std::int64_t{i} && verified;
    }
  });
  session.coordinator.join();
  report_rate(session, "results fetched", sizeof(std::int64_t), verified, seconds);
}

void large_arguments(const Session& session) {
  std::vector<std::uint8_t> argument(kArgumentBytes);
  std::iota(argument.begin(), argument.end(), std::uint8_t{0});
  const std::int64_t expected = sum(argument);
  bool verified = true;
  const auto seconds = samples(session, [&] {
    std::vector<RemoteValue<std::int64_t>> values;
    values.reserve(static_cast<std::size_t>(closures));
    for (int i = 0; i < closures; ++i) values.push_back(session.coordinator.schedule<&sum>(argument));
    for (const auto& value : values) verified = value.fetch() == expected && verified;
  });
  session.coordinator.join();
  report_rate(session, "1 KiB arguments", kArgumentBytes, verified, seconds);
}

/// Measures the share of the workers' time spent in functions of 1 ms, if all are queued at the start.
void useful_time(const Session& session) {
  constexpr std::int64_t kFunctionNanoseconds = 1'000'000;
  const int functions = 500 * session.coordinator.workers();
  std::vector<double> seconds;
  for (int i = -1; i < std::max(session.options.repeat, session.options.iters); ++i) {
    const double time = seconds_of([&] {
      for (int f = 0; f < functions; ++f) session.coordinator.schedule<&compute>(kFunctionNanoseconds);
      session.coordinator.join();
    });
    if (i >= 0) seconds.push_back(time);
  }
  Result result{"functions of 1 ms", "useful time", sizeof(std::int64_t), "bytes", "of the time"};
  result.verified = true;  // join() waits for all functions
  result =
      rate_result(result, 1e-9 * kFunctionNanoseconds * functions / session.coordinator.workers(), seconds);
  result.bound = 1;
  result.bound_name = "the functions alone";
  session.report.add(result);
}

void measure_all(const Session& session) {
  const std::pair<const char*, void (*)(const Session&)> cases[] = {
      {"empty closures", &empty_closures},
      {"counting closures", &counting_closures},
      {"one closure, scheduled and fetched", &one_closure},
      {"results fetched", &results_fetched},
      {"1 KiB arguments", &large_arguments},
      {"functions of 1 ms", &useful_time},
  };
  for (const auto& [name, measure] : cases) {
    if (session.options.wants(name)) measure(session);
  }
}

}  // namespace
}  // namespace capstan::perf

int main(int argc, char** argv) {
  using namespace capstan::perf;
  return run(argc, argv,
             {.question = "Measures closures per second, and the latency of one from schedule to fetch.",
              .measure = &measure_all,
              .more_flags =
                  [](CLI::App& app) {
                    app.add_option("--closures", closures, "closures per sample")->check(CLI::PositiveNumber);
                  },
              .one_closure_per_worker = false});
}
