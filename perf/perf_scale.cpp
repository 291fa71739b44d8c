// perf_scale.cpp -- cost of many rings, connections and ranks.
//
// Started alone: the rings that a ps polls, and connections over UCX, both in this process. Under mpirun: the
// ranks of the job, such as 64 workers on this host.
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
                    if (!session.cluster.embedded()) return measure_ranks(session);
                    measure_polling(scale, session.options, session.report);
                    measure_connections(scale, session.options, session.report);
                  },
              .more_flags =
                  [&scale](CLI::App& app) {
                    app.add_option("--rings", scale.rings,
                                   "numbers of rings of a ps, comma-separated; without mpirun only")
                        ->delimiter(',')
                        ->check(CLI::PositiveNumber);
                    app.add_option(
                           "--connections", scale.connections,
                           "numbers of connections to a hub, ascending, comma-separated; without mpirun only")
                        ->delimiter(',')
                        ->check(CLI::PositiveNumber);
                  }});
}
