// perf_counter.cpp -- rate and latency of fetch_add on a global step.
//
// Bound: `ucx_perftest -t ucp_fadd` on the same transport, from --bounds. Rival: MPI_Fetch_and_op between the
// same ranks.
#include <fmt/format.h>
#include <mpi.h>

#include "perf/bench/mpi_ranks.hpp"
#include "perf/bench/program.hpp"
#include "perf/bench/statistics.hpp"

namespace capstan::perf {
namespace {

constexpr int kRateCalls = 1000;     // calls per sample of the rate
constexpr int kLatencySamples = 50;  // samples of a single call, per iteration of --iters
constexpr const char* kRateBound = "fetch_add_rate";
constexpr const char* kLatencyBound = "fetch_add_latency";
constexpr const char* kRate = "fetch_add rate";
constexpr const char* kLatency = "fetch_add latency";

struct CounterCase {
  int calls = 1;
  int warmup = 0;
  int samples = 0;
  std::int64_t added() const { return std::int64_t{calls} * (warmup + samples); }
};

/// Sets `verified` if the results of this worker's calls strictly increase.
Timings measure(CounterCase c, Counter step, Counter counter, std::int64_t workers) {
  Timings timings;
  timings.verified = true;
  std::int64_t last = -1;
  take_turns(
      c.warmup, c.samples, StartBarrier(counter, workers), false, [] {},
      [&] {
        for (int k = 0; k < c.calls; ++k) {
          const std::int64_t before = step.fetch_add(1);
          timings.verified = timings.verified && before > last;
          last = before;
        }
      },
      [] {}, timings);
  return timings;
}

CounterCase rate_case(const Options& o) { return {kRateCalls, o.warmup, o.iters}; }
CounterCase latency_case(const Options& o) {
  return {1, o.warmup * kLatencySamples, o.iters * kLatencySamples};
}

Timings measure_case(const Session& session, const CounterCase& c, const char* name) {
  const Counter step(std::string("step ") + name);
  Timings timings;
  timings.verified = true;
  for (int repeat = 0; repeat < session.options.repeat; ++repeat) {
    append_slowest(timings, session.on_all_workers<&measure>(c, step));
  }
  const std::int64_t all = c.added() * session.options.repeat * session.workers;
  timings.verified = timings.verified && step.value() == all;
  return timings;
}

void measure_rate(const Session& session) {
  const double workers = static_cast<double>(session.workers);
  const Timings timings = measure_case(session, rate_case(session.options), "rate");
  Result rate{kRate, kRate, sizeof(std::int64_t), "bytes", "calls/s"};
  rate.verified = timings.verified;
  rate = rate_result(rate, kRateCalls * workers, timings.measured);
  rate.bound = session.bounds.at(kRateBound, rate.size);
  rate.bound_name = session.bounds.by(kRateBound);
  session.report.add(rate);
}

void measure_latency(const Session& session) {
  const Timings timings = measure_case(session, latency_case(session.options), "latency");
  Result latency{kLatency, kLatency, sizeof(std::int64_t), "bytes", "us"};
  latency.verified = timings.verified;
  latency = time_result(latency, 1e6, timings.measured);
  latency.bound = session.bounds.at(kLatencyBound, latency.size);
  latency.bound_name = session.bounds.by(kLatencyBound);
  session.report.add(latency);
}

void measure_all(const Session& session) {
  if (session.options.wants(kRate)) measure_rate(session);
  if (session.options.wants(kLatency)) measure_latency(session);
}

/// Times the workers' additions to a word in the window of the first ps.
std::vector<double> rival_seconds(const MpiRanks& ranks, const CounterCase& c, MPI_Win window) {
  std::vector<double> seconds;
  if (ranks.role() != Role::worker) return seconds;
  const std::int64_t one = 1;
  std::int64_t before = 0;
  for (int sample = -c.warmup; sample < c.samples; ++sample) {
    MPI_Barrier(ranks.worker_comm());
    const double time = seconds_of([&] {
      for (int k = 0; k < c.calls; ++k) {
        MPI_Fetch_and_op(&one, &before, MPI_INT64_T, ranks.ps()[0], 0, MPI_SUM, window);
        MPI_Win_flush(ranks.ps()[0], window);
      }
    });
    if (sample >= 0) seconds.push_back(time);
  }
  return seconds;
}

void rival(const MpiRanks& ranks, const Options& options, Report& report) {
  constexpr const char* kName = "MPI_Fetch_and_op";
  const bool holds_word = ranks.rank() == ranks.ps()[0];
  std::int64_t* word = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  MPI_Win_allocate(holds_word ? sizeof *word : 0, sizeof *word, MPI_INFO_NULL, MPI_COMM_WORLD, &word,
                   &window);
  MPI_Win_lock_all(0, window);
  if (holds_word) *word = 0;
  MPI_Win_sync(window);
  ranks.barrier();
  const std::vector<double> rate =
      ranks.slowest(rival_seconds(ranks, rate_case(options), window), options.iters);
  const CounterCase single = latency_case(options);
  const std::vector<double> latency = ranks.slowest(rival_seconds(ranks, single, window), single.samples);
  const auto workers = static_cast<std::int64_t>(ranks.workers().size());
  MPI_Win_sync(window);
  const std::int64_t all = (rate_case(options).added() + single.added()) * workers;
  const bool verified = ranks.true_on_all(!holds_word || *word == all);
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
  if (!verified || ranks.rank() != 0) return;
  report.set_better_rival(kRate, kRateCalls * static_cast<double>(workers) / median(rate), kName);
  report.set_better_rival(kLatency, 1e6 * median(latency), kName);
}

}  // namespace
}  // namespace capstan::perf

int main(int argc, char** argv) {
  using namespace capstan::perf;
  return run(argc, argv,
             {.question = "Measures rate and latency of Counter::fetch_add, compared with MPI_Fetch_and_op.",
              .measure = &measure_all,
              .rival = &rival});
}
