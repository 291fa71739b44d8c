// plan.cpp -- compares numbers of ps by their bounds, and simulates the chosen one.
#include "simulate/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "capstan/error.hpp"
#include "simulate/job_simulation.hpp"

namespace capstan::simulate {
namespace {

/// Share of the step time for which a ps or its links may be busy: above it, waiting lines grow quickly.
constexpr double kBusyShare = 0.8;
/// A larger number of ps must shorten the step by more than this.
constexpr double kWorthwhile = 0.05;
/// Visits of a ps by the steps of all workers that a prediction simulates, which takes about a second. The
/// most workers need more, for a step after the warm-up: some seconds.
constexpr double kSimulatedVisits = 40'000;
/// The rate needs whole rounds of steps after the warm-up, in which some workers end several steps.
constexpr double kMinSteps = 6;
constexpr double kMaxSteps = 200;
constexpr int kMostSimulatedPs = 4;
/// For more workers, only the most loaded ps and one that stands for all others are simulated, to save time.
constexpr int kManyWorkers = 2'000;
constexpr int kMostSimulatedPsOfManyWorkers = 2;
constexpr double kBytesPerFloat = 4;
constexpr int kMostPs = 100'000;

JobModel with_ps(const PlanRequest& request, int ps) {
  JobModel job = request.job;
  job.ps = ps;
  job.rows = request.rows;
  job.hottest_row = hottest_row_share(request.rows, request.zipf);
  if (job.host.cores == 0) {
    const int ranks = job.one_host ? 1 + ps + job.workers : std::max(job.workers_per_host, job.ps_per_host);
    job.host.cores = static_cast<std::size_t>(ranks);
  }
  job.most_simulated_ps = job.workers > kManyWorkers ? kMostSimulatedPsOfManyWorkers : kMostSimulatedPs;
  const double visits =
      static_cast<double>(job.workers) * std::max(job.most_simulated_ps, job.simulated_ps());
  job.steps = static_cast<int>(std::clamp(kSimulatedVisits / visits, kMinSteps, kMaxSteps));
  return job;
}

/// Least step time if ps and their links may be busy for a part of it only.
double padded_bound(const JobModel& job, const Constants& constants) {
  double longest = 0;
  for (const StepBound& bound : step_bounds(job, constants)) {
    longest = std::max(longest, bound.of_ps ? bound.seconds / kBusyShare : bound.seconds);
  }
  return longest;
}

double bytes_per_ps(const PlanRequest& request, int ps) {
  return request.rows * request.job.dim * kBytesPerFloat * request.row_factor / ps;
}

/// Numbers of ps to compare: all of the first 16, then in steps of about a tenth.
std::vector<int> candidates(int least, int most) {
  std::vector<int> all;
  for (int ps = least; ps <= most; ps += std::max(1, ps / 10)) all.push_back(ps);
  return all;
}

/// Returns the least number of ps that hold the rows.
int least_ps(const PlanRequest& request) {
  if (request.ps_memory <= 0) return 1;
  const double needed = std::max(1.0, std::ceil(bytes_per_ps(request, 1) / request.ps_memory));
  if (needed > kMostPs) {
    throw Error(
        Code::invalid_argument,
        fmt::format("--ps-memory: {:.0f} bytes need {:.0f} ps to hold the table, expected at most {} ps",
                    request.ps_memory, needed, kMostPs));
  }
  if (request.ps > 0 && request.ps < needed) {
    throw Error(Code::invalid_argument,
                fmt::format("--ps: found {}, expected at least {:.0f}, which hold the table with --ps-memory",
                            request.ps, needed));
  }
  return static_cast<int>(needed);
}

int recommend(const PlanRequest& request, const Constants& constants, int least) {
  double best = std::numeric_limits<double>::infinity();
  std::vector<std::pair<int, double>> times;
  for (const int ps : candidates(least, std::max(least, 2 * request.job.workers))) {
    times.emplace_back(ps, padded_bound(with_ps(request, ps), constants));
    best = std::min(best, times.back().second);
  }
  for (const auto& [ps, time] : times) {
    if (time <= (1 + kWorthwhile) * best) return ps;
  }
  return least;
}

PlannedJob predict(const PlanRequest& request, const Constants& constants, int ps) {
  const JobModel job = with_ps(request, ps);
  PlannedJob planned{ps, bytes_per_ps(request, ps), simulate_job(job, constants), step_bounds(job, constants),
                     largest_bound(job, constants)};
  return planned;
}

}  // namespace

double hottest_row_share(double rows, double exponent) {
  if (exponent <= 0) return 0;
  // Sum of k^-s for k = 1..n: the first terms, and the integral of the rest.
  constexpr double kTerms = 1000;
  double sum = 0;
  for (double k = 1; k <= std::min(rows, kTerms); ++k) sum += std::pow(k, -exponent);
  if (rows > kTerms) {
    const double a = kTerms + 0.5;
    const double b = rows + 0.5;
    sum += exponent == 1 ? std::log(b / a)
                         : (std::pow(b, 1 - exponent) - std::pow(a, 1 - exponent)) / (1 - exponent);
  }
  return 1 / sum;
}

Plan plan_job(const PlanRequest& request, const Constants& constants) {
  if (!(request.rows >= 1) || !std::isfinite(request.rows)) {
    throw Error(Code::invalid_argument,
                fmt::format("cannot plan the job: its table has {} rows, expected at least 1", request.rows));
  }
  if (!(request.zipf >= 0) || !std::isfinite(request.zipf)) {
    throw Error(Code::invalid_argument,
                fmt::format("cannot plan the job: Zipf's exponent is {}, expected a number of at least 0",
                            request.zipf));
  }
  Plan plan;
  const int least = least_ps(request);
  const int ps = request.ps > 0 ? request.ps : recommend(request, constants, least);
  plan.chosen = predict(request, constants, ps);
  if (ps / 2 >= least) plan.others.push_back(predict(request, constants, ps / 2));
  plan.others.push_back(predict(request, constants, 2 * ps));
  return plan;
}

}  // namespace capstan::simulate
