// perf_idle.cpp -- CPU time of idle ranks, and the latency of the first push after idleness.
//
// CPU time is read from the kernel (/proc/PID/task/*/schedstat) for every rank on the coordinator's host. The
// bound of a push after idleness is the same push without it.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <sched.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>
#include <vector>

#include "cluster/runtime.hpp"
#include "perf/bench/program.hpp"
#include "perf/bench/statistics.hpp"

namespace capstan::perf {
namespace {

constexpr std::int64_t kWidth = 64;
constexpr int kMinTries = 21;

int idle_milliseconds = 1000;  // --idle-ms

/// CPU seconds of all threads of a process; nullopt if the kernel does not report them.
std::optional<double> cpu_seconds(std::int64_t pid) {
  double nanoseconds = 0;
  bool found = false;
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid), error)) {
    std::ifstream file(task.path() / "schedstat");
    double ran = 0;
    if (file >> ran) {
      nanoseconds += ran;
      found = true;
    }
  }
  return found ? std::optional(nanoseconds / 1e9) : std::nullopt;
}

/// Pushes one row and waits until it is applied.
void push_one(const Variable<float>& variable) {
  static const std::vector<std::int64_t> ids{0};
  static const std::vector<float> gradient(kWidth, -1);
  variable.push(ids, gradient);
  variable.flush();
}

/// measured: push after idleness; bound: push immediately after another one.
Timings measure_push_latency(Variable<float> variable, int idle, int tries) {
  Timings timings;
  for (int i = -1; i < tries; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(idle));
    const double after_idleness = seconds_of([&] { push_one(variable); });
    const double immediate = seconds_of([&] { push_one(variable); });
    if (i < 0) continue;  // the very first push sets up the ring
    timings.measured.push_back(after_idleness);
    timings.bound.push_back(immediate);
  }
  return timings;
}

/// Pins the calling thread to the n-th of the cores in `allowed`, if there are as many.
void pin_to(const cpu_set_t& allowed, int n) {
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || n-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) throw std::system_error(errno, std::generic_category());
    return;
  }
}

/// Seconds from the notification of a thread that slept on another core for `idle` ms until its answer: the
/// wake-up latency of the system.
std::vector<double> measure_wake_up(int idle, int tries) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
    throw std::system_error(errno, std::generic_category(), "sched_getaffinity");
  }
  pin_to(allowed, 0);
  std::atomic<int> requested = 0;
  std::atomic<int> answered = 0;
  const std::jthread sleeper([&] {
    pin_to(allowed, 1);
    for (int i = 0; i < tries; ++i) {
      requested.wait(i);
      answered = i + 1;
    }
  });
  std::vector<double> seconds;
  for (int i = 0; i < tries; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(idle));
    seconds.push_back(seconds_of([&] {
      requested = i + 1;
      requested.notify_one();
      while (answered != i + 1) std::this_thread::yield();
    }));
  }
  (void)sched_setaffinity(0, sizeof allowed, &allowed);  // restores the previous mask
  return seconds;
}

/// Pushes once, so that the worker is connected to all ps before its idleness is measured.
bool push_on_worker(Variable<float> variable, Counter counter, std::int64_t workers) {
  StartBarrier(counter, workers).wait();
  push_one(variable);
  return true;
}

/// Measures the CPU time of each rank on this host except the coordinator, in percent of a core, with one
/// sample per repeat.
void measure_cpu(const Session& session, const Variable<float>& variable) {
  const auto& members = session.cluster.runtime()->members();
  const std::string here = session.cluster.runtime()->self().host;
  session.on_all_workers<&push_on_worker>(variable);
  std::vector<std::vector<double>> percent(members.size());
  const auto idle = std::chrono::milliseconds(idle_milliseconds);
  for (int repeat = 0; repeat < session.options.repeat; ++repeat) {
    std::this_thread::sleep_for(idle / 10);  // let pending work finish
    const auto begin = std::chrono::steady_clock::now();
    std::vector<std::optional<double>> before;
    for (const auto& member : members) before.push_back(cpu_seconds(member.pid));
    std::this_thread::sleep_for(idle);
    for (std::size_t i = 0; i < members.size(); ++i) {
      const auto after = cpu_seconds(members[i].pid);
      const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      if (after && before[i]) percent[i].push_back(100 * (*after - *before[i]) / wall);
    }
  }
  // Verifies that the ranks still work after idleness.
  session.on_all_workers<&push_on_worker>(variable);
  const bool verified = variable.pull()[0] == static_cast<float>(2 * session.workers);
  for (std::size_t i = 0; i < members.size(); ++i) {
    const bool shown = members[i].host == here && members[i].role != Role::coordinator;
    if (!shown || session.cluster.embedded() || percent[i].empty()) continue;
    const std::string name = fmt::format("idle {} {}", to_string(members[i].role), members[i].index);
    Result result{name, name, static_cast<std::uint64_t>(idle_milliseconds), "ms idle", "% of a core"};
    result.verified = verified;
    session.report.add(time_result(result, 1, percent[i]));
  }
}

void measure_all(const Session& session) {
  const Variable<float> variable("idle", Shape{std::int64_t{64}, kWidth}, initializers::zeros(),
                                 {optimizers::SGD{1.0}});
  measure_cpu(session, variable);

  const float before = variable.pull()[0];
  const int tries = std::max(kMinTries, session.options.iters);
  const Timings timings =
      session.coordinator.schedule<&measure_push_latency>(variable, idle_milliseconds, tries).fetch();
  session.coordinator.join();
  const char* name = "push and flush after idleness";
  Result result{name, name, static_cast<std::uint64_t>(idle_milliseconds), "ms idle", "us"};
  result.verified = variable.pull()[0] == before + static_cast<float>(2 * (tries + 1));
  result = time_result(result, 1e6, timings.measured);
  result.bound = 1e6 * median(timings.bound);
  result.bound_name = "the same push without idleness";
  session.report.add(result);

  const char* wake_up = "a thread asleep on another core is woken";
  Result bare{wake_up, wake_up, static_cast<std::uint64_t>(idle_milliseconds), "ms idle", "us"};
  bare.verified = true;  // every request was answered
  session.report.add(time_result(bare, 1e6, measure_wake_up(idle_milliseconds, tries)));
}

}  // namespace
}  // namespace capstan::perf

int main(int argc, char** argv) {
  using namespace capstan::perf;
  return run(
      argc, argv,
      {.question = "Measures the CPU time of idle ranks, and the latency of the first push after idleness.",
       .measure = &measure_all,
       .more_flags = [](CLI::App& app) {
         app.add_option("--idle-ms", idle_milliseconds, "duration of the idleness, in milliseconds")
             ->check(CLI::PositiveNumber);
       }});
}
