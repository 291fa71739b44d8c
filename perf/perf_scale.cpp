// perf_scale.cpp -- what ranks cost that are many.
//
// Alone: the rings that a ps polls, and connections over UCX, both in this process. Under mpirun: the job's
// own ranks, such as 64 workers on this host.
#include <CLI/CLI.hpp>

#include "perf/bench/program.hpp"
#include "perf/scale/scale.hpp"

int main(int argc, char** argv) {
  using namespace capstan::perf;
  ScaleOptions scale;
  return run(argc, argv,
             {.question = "What polling, connections and ranks cost when there are many of them.",
              .measure =
                  [&scale](const Session& session) {
                    if (!session.cluster.embedded()) return measure_ranks(session);
                    measure_polling(scale, session.options, session.report);
                    measure_connections(scale, session.options, session.report);
                  },
              .more_flags =
                  [&scale](CLI::App& app) {
                    app.add_option("--rings", scale.rings, "rings in a ps, one or several (alone)")
                        ->delimiter(',')
                        ->check(CLI::PositiveNumber);
                    app.add_option("--connections", scale.connections,
                                   "connections to a hub, one or several, growing (alone)")
                        ->delimiter(',')
                        ->check(CLI::PositiveNumber);
                  }});
}
