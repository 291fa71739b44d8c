// perf_idle.cpp -- what ranks that have nothing to do cost, and how soon they notice that they have.
//
// CPU time is the kernel's (/proc/PID/task/*/schedstat) of every rank on the coordinator's host. The bound
// of a push after idleness is the same push without it.
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

/// Seconds that all threads of a process have run; nothing where the kernel does not tell.
std::optional<double> cpu_seconds(std::int64_t pid) {
  double nanoseconds = 0;
  bool found = false;
  std::error_code gone;
  for (const auto& task : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid), gone)) {
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

/// figure: after idleness; bound: at once after another push.
Timings measure_notice(Variable<float> variable, int idle, int tries) {
  Timings timings;
  for (int i = -1; i < tries; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(idle));
    const double after_idleness = seconds_of([&] { push_one(variable); });
    const double at_once = seconds_of([&] { push_one(variable); });
    if (i < 0) continue;  // the first push of all sets up the ring
    timings.figure.push_back(after_idleness);
    timings.bound.push_back(at_once);
  }
  return timings;
}

/// Keeps the calling thread on the n-th of the cores in `allowed`, where there are so many.
void stay_on(const cpu_set_t& allowed, int n) {
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || n-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) throw std::system_error(errno, std::generic_category());
    return;
  }
}

/// Seconds until a thread that has slept on another core for `idle` ms has answered: what the system takes
/// for a wake-up by itself.
std::vector<double> measure_wake_up(int idle, int tries) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
    throw std::system_error(errno, std::generic_category(), "sched_getaffinity");
  }
  stay_on(allowed, 0);
  std::atomic<int> asked = 0;
  std::atomic<int> answered = 0;
  const std::jthread sleeper([&] {
    stay_on(allowed, 1);
    for (int i = 0; i < tries; ++i) {
      asked.wait(i);
      answered = i + 1;
    }
  });
  std::vector<double> seconds;
  for (int i = 0; i < tries; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(idle));
    seconds.push_back(seconds_of([&] {
      asked = i + 1;
      asked.notify_one();
      while (answered != i + 1) std::this_thread::yield();
    }));
  }
  (void)sched_setaffinity(0, sizeof allowed, &allowed);  // it was allowed before
  return seconds;
}

/// Does one thing, so that the worker has connected to all ps before its idleness is measured.
bool touch(Variable<float> variable, Counter counter, std::int64_t workers) {
  Together(counter, workers).wait();
  push_one(variable);
  return true;
}

/// Percent of a core, for each rank here but the coordinator, one sample a repeat.
void measure_cpu(const Session& session, const Variable<float>& variable) {
  const auto& members = session.cluster.runtime()->members();
  const std::string here = session.cluster.runtime()->self().host;
  session.on_all_workers<&touch>(variable);
  std::vector<std::vector<double>> percent(members.size());
  const auto idle = std::chrono::milliseconds(idle_milliseconds);
  for (int repeat = 0; repeat < session.options.repeat; ++repeat) {
    std::this_thread::sleep_for(idle / 10);  // let the last work end
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
  // Idle ranks are worth nothing unless they still work.
  session.on_all_workers<&touch>(variable);
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
      session.coordinator.schedule<&measure_notice>(variable, idle_milliseconds, tries).fetch();
  session.coordinator.join();
  const char* name = "push and flush after idleness";
  Result result{name, name, static_cast<std::uint64_t>(idle_milliseconds), "ms idle", "us"};
  result.verified = variable.pull()[0] == before + static_cast<float>(2 * (tries + 1));
  result = time_result(result, 1e6, timings.figure);
  result.bound = 1e6 * median(timings.bound);
  result.bound_name = "the same push without idleness";
  session.report.add(result);

  const char* wake_up = "a thread asleep on another core is woken";
  Result bare{wake_up, wake_up, static_cast<std::uint64_t>(idle_milliseconds), "ms idle", "us"};
  bare.verified = true;  // it has answered as often as it was asked
  session.report.add(time_result(bare, 1e6, measure_wake_up(idle_milliseconds, tries)));
}

}  // namespace
}  // namespace capstan::perf

int main(int argc, char** argv) {
  using namespace capstan::perf;
  return run(
      argc, argv,
      {.question = "CPU time of idle ranks, and how long a push takes that ends the idleness.",
       .measure = &measure_all,
       .more_flags = [](CLI::App& app) {
         app.add_option("--idle-ms", idle_milliseconds, "how long to be idle")->check(CLI::PositiveNumber);
       }});
}
