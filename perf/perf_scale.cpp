// perf_scale.cpp -- cost of many rings, connections and ranks.
//
// Without mpirun, measures the rings that a ps polls, and connections over UCX, both within this process.
// Under mpirun, measures the ranks of the job, such as 64 workers on this host, and paced steps of them.
#include <CLI/CLI.hpp>

#include "perf/bench/program.hpp"
#include "perf/scale/scale.hpp"

int main(int argc, char** argv) {
  using namespace capstan::perf;
  ScaleOptions scale;
  return run(argc, argv,
             {.question = "Measures the cost of polling, connections and ranks when there are many of them.",
              .measure =
                  [&scale](const Session& session) {
                    if (!session.cluster.embedded()) {
                      measure_ranks(session);
                      measure_steps(scale, session);
                      return;
                    }
                    measure_polling(scale, session.options, session.report);
                    measure_connections(scale, session.options, session.report);
                  },
              .more_flags =
                  [&scale](CLI::App& app) {
                    app.add_option("--rings", scale.rings,
                                   "ring counts to measure on one ps, comma-separated; ignored under mpirun")
                        ->delimiter(',')
                        ->check(CLI::PositiveNumber);
                    app.add_option("--connections", scale.connections,
                                   "connection counts to measure on one hub, ascending, comma-separated; "
                                   "ignored under mpirun")
                        ->delimiter(',')
                        ->check(CLI::PositiveNumber);
                    const std::string only_ranks = "; ignored without mpirun";
                    app.add_option("--steps", scale.steps, "paced steps per worker" + only_ranks)
                        ->check(CLI::PositiveNumber);
                    app.add_option(
                           "--compute-us", scale.compute_us,
                           "microseconds that a paced step sleeps in place of a computation" + only_ranks)
                        ->check(CLI::NonNegativeNumber);
                    app.add_option("--batch", scale.batch, "rows of a paced step" + only_ranks)
                        ->check(CLI::PositiveNumber);
                  }});
}
