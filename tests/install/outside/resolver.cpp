// resolver.cpp -- one task of a cluster that the program itself describes, built with the installed package.
//
//   resolver JOB INDEX CHIEF PS WORKER     (addresses HOST:PORT; one process for each of the three tasks)
//
// The chief prints a number that the worker computed, and the strategy's description of the cluster.
#include <capstan/capstan.hpp>
#include <cstdio>
#include <cstdlib>

namespace cs = capstan;

int twice(int number) { return 2 * number; }

int main(int argc, char** argv) {
  if (argc < 6) return 2;
  const cs::SimpleClusterResolver resolver({{{"chief", {argv[3]}}, {"ps", {argv[4]}}, {"worker", {argv[5]}}}},
                                           {.task_type = argv[1], .task_id = std::atoi(argv[2])});
  const cs::Cluster cluster = cs::Cluster::join(argc, argv, resolver);
  if (cluster.role() != cs::Role::coordinator) return cs::Server(cluster).join();
  cs::ParameterServerStrategy strategy(cluster);
  cs::ClusterCoordinator coordinator(strategy);
  const auto description = strategy.cluster_resolver();
  std::printf("twice 21 is %d\n", coordinator.schedule<&twice>(21).fetch());
  std::printf("this is %s %d at %s\n", description->task_type()->c_str(), *description->task_id(),
              description->master().c_str());
  std::printf("ps 0 is at %s\n", description->cluster_spec().task_address("ps", 0).c_str());
  return 0;
}
