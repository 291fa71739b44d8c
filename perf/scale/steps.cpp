// steps.cpp -- paced training steps: rate and communication time when many workers share a ps.
//
// A step looks up rows, sleeps in place of a computation, pushes gradients and flushes. Since the worker
// sleeps, many ranks can share few cores before the cores limit the rate.
#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "perf/bench/ids.hpp"
#include "perf/bench/program.hpp"
#include "perf/bench/statistics.hpp"
#include "perf/scale/scale.hpp"

namespace capstan::perf {
namespace {

constexpr std::int64_t kStepRows = 16384;  // per ps
constexpr std::int64_t kStepWidth = 64;
constexpr const char* kSteps = "paced steps";

/// Arguments of a step. Serialized to the worker.
struct PacedStep {
  std::int64_t rows = 0;  // of the table
  std::int64_t batch = 0;
  std::int64_t compute_us = 0;
  std::uint64_t seed = 0;
};

/// Returns the seconds of the lookup, of the push with its flush, and of the step from the lookup to the
/// flush.
std::vector<double> paced_step(PacedStep step, Variable<float> variable) {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(step.batch));
  Ids("uniform", static_cast<std::uint64_t>(step.rows), 1, step.seed).draw(ids);
  static thread_local std::vector<float> gradient;
  gradient.assign(ids.size() * kStepWidth, -1);
  double lookup = 0;
  double push = 0;
  const double all = seconds_of([&] {
    lookup = seconds_of([&] { variable.lookup(ids); });
    std::this_thread::sleep_for(std::chrono::microseconds(step.compute_us));
    push = seconds_of([&] {
      variable.push(ids, gradient);
      variable.flush();
    });
  });
  return {lookup, push, all};
}

/// Returns the seconds for which the processors of this host were busy since its start, all programs
/// together.
double processor_seconds() {
  std::ifstream file("/proc/stat");
  std::string name;
  double user = 0, nice = 0, system = 0, idle = 0, wait = 0, interrupts = 0, soft_interrupts = 0;
  file >> name >> user >> nice >> system >> idle >> wait >> interrupts >> soft_interrupts;
  return (user + nice + system + interrupts + soft_interrupts) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

/// Returns a result of all steps, named for the pace.
Result step_result(const ScaleOptions& scale, const Session& session, const char* part, const char* unit) {
  const std::string group = fmt::format("{}{} compute={}us batch={} ps={}", kSteps, part, scale.compute_us,
                                        scale.batch, session.cluster.count(Role::ps));
  return {fmt::format("{} workers={}", group, session.workers), group,
          static_cast<std::uint64_t>(session.workers), "workers", unit};
}

}  // namespace

void measure_steps(const ScaleOptions& scale, const Session& session) {
  if (!session.options.wants(kSteps)) return;
  const std::int64_t rows = kStepRows * session.cluster.count(Role::ps);
  const Variable<float> variable("paced", Shape{rows, kStepWidth}, initializers::zeros(),
                                 {optimizers::SGD{1.0}});
  std::uint64_t seed = session.options.seed;
  std::vector<double> lookups;
  std::vector<double> pushes;
  std::vector<double> durations;
  const auto run = [&](std::int64_t steps) {
    std::vector<RemoteValue<std::vector<double>>> values;
    for (std::int64_t i = 0; i < steps; ++i) {
      values.push_back(session.coordinator.schedule<&paced_step>(
          PacedStep{rows, scale.batch, scale.compute_us, seed++}, variable));
    }
    session.coordinator.join();
    for (const auto& value : values) {
      const std::vector<double> seconds = value.fetch();
      lookups.push_back(seconds.at(0));
      pushes.push_back(seconds.at(1));
      durations.push_back(seconds.at(2));
    }
  };
  // The warm-up connects every worker and opens its rings.
  const std::int64_t warmup = 4 * session.workers;
  run(warmup);
  lookups.clear();
  pushes.clear();
  durations.clear();
  const std::int64_t steps = scale.steps * session.workers;
  const double busy_before = processor_seconds();
  const double seconds = seconds_of([&] { run(steps); });
  const double busy = processor_seconds() - busy_before;

  double sum = 0;
  for (const float value : variable.pull()) sum += static_cast<double>(value);
  const bool verified = sum == static_cast<double>((warmup + steps) * scale.batch * kStepWidth);
  const auto add = [&](Result result) { session.report.add(std::move(result)); };
  Result rate = step_result(scale, session, "", "steps/s");
  rate.verified = verified;
  rate = rate_result(rate, static_cast<double>(steps), {seconds});
  rate.bound = 1e6 * static_cast<double>(session.workers) /
               static_cast<double>(std::max<std::int64_t>(1, scale.compute_us));
  rate.bound_name = "the computation alone";
  add(rate);
  Result lookup = step_result(scale, session, ", lookup", "us");
  lookup.verified = verified;
  add(time_result(lookup, 1e6, lookups));
  Result push = step_result(scale, session, ", push and flush", "us");
  push.verified = verified;
  add(time_result(push, 1e6, pushes));
  Result duration = step_result(scale, session, ", duration", "us");
  duration.verified = verified;
  add(time_result(duration, 1e6, durations));
  Result processors = step_result(scale, session, ", processor time", "us/step");
  processors.verified = verified;
  add(time_result(processors, 1e6 / static_cast<double>(steps), {busy}));
}

}  // namespace capstan::perf
