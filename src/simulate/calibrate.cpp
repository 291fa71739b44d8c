// calibrate.cpp -- a search along one constant at a time, in smaller and smaller steps.
#include "simulate/calibrate.hpp"

#include <array>
#include <cmath>

#include "capstan/error.hpp"
#include "simulate/job_simulation.hpp"

namespace capstan::simulate {
namespace {

/// The rate varies least from run to run, and the p99 of a push most.
constexpr double kWeightOfRate = 10;
constexpr double kWeightOfPushP99 = 0.3;
constexpr std::array kFitFactors{1.7, 1.3, 1.15, 1.07, 1.03};
constexpr int kRoundsPerFactor = 4;

using SetFitted = void (*)(Constants&, double factor);
constexpr std::array<SetFitted, 6> kFitted{[](Constants& c, double factor) { c.closure *= factor; },
                                           [](Constants& c, double factor) { c.step *= factor; },
                                           [](Constants& c, double factor) { c.apply *= factor; },
                                           [](Constants& c, double factor) { c.wake_up *= factor; },
                                           [](Constants& c, double factor) { c.wake_up_spread *= factor; },
                                           [](Constants& c, double factor) { c.timer *= factor; }};

double squared_error(double predicted, double measured) {
  if (measured <= 0 || predicted <= 0) return 0;
  const double error = std::log(predicted / measured);
  return error * error;
}

double error_of(std::span<const PacedRun> runs, const Constants& constants) {
  double sum = 0;
  for (const PacedRun& run : runs) {
    const Prediction predicted = simulate_job(run.job, constants);
    sum += kWeightOfRate * squared_error(predicted.whole_rate, run.rate);
    if (run.job.compute == 0) continue;
    sum += squared_error(predicted.step_p99, run.step_p99);
    sum += squared_error(predicted.push_median, run.push_median);
    sum += kWeightOfPushP99 * squared_error(predicted.push_p99, run.push_p99);
  }
  return sum;
}

}  // namespace

JobModel paced_job(int workers, int ps, std::size_t cores, double batch, double compute) {
  JobModel job;
  job.workers = workers;
  job.ps = ps;
  job.one_host = true;
  job.host.cores = cores;
  job.batch = batch;
  job.compute = compute;
  job.paced = true;
  job.in_flight = 1;
  job.steps = 200;
  return job;
}

Constants calibrate(std::span<const PacedRun> runs, const Constants& constants) {
  if (runs.empty()) throw Error(Code::invalid_argument, "cannot fit constants: there are 0 runs");
  Constants best = constants;
  best.closure = best.step = best.apply = 30e-6;
  best.wake_up = 20e-6;
  best.wake_up_spread = 30e-6;
  double least = error_of(runs, best);
  for (const double factor : kFitFactors) {
    for (int round = 0; round < kRoundsPerFactor; ++round) {
      for (const SetFitted set : kFitted) {
        for (const double by : {factor, 1 / factor}) {
          Constants changed = best;
          set(changed, by);
          const double error = error_of(runs, changed);
          if (error >= least) continue;
          least = error;
          best = changed;
          break;
        }
      }
    }
  }
  return best;
}

}  // namespace capstan::simulate
