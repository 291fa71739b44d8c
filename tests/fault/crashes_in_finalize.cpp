// crashes_in_finalize.cpp -- a job in which one rank crashes at the end of MPI_Finalize.
//
//   mpirun -np 4 crashes_in_finalize RANK
//
// Prints the sum of the workers' pushes, of 1 each.
#include <mpi.h>
#include <signal.h>

#include <capstan/capstan.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

namespace cs = capstan;

std::string rank_of_victim;

bool add_one(cs::Variable<float> sum) {
  sum.scatter_add(std::vector<std::int64_t>{0}, std::vector<float>{1});
  return true;
}

}  // namespace

// Replaces the library's function.
extern "C" int MPI_Finalize() {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  const int status = PMPI_Finalize();
  if (rank == nullptr || rank_of_victim != rank) return status;
  signal(SIGSEGV, SIG_DFL);
  return raise(SIGSEGV);
}

int main(int argc, char** argv) {
  rank_of_victim = argv[1];
  const cs::Cluster cluster = cs::Cluster::join(argc, argv);
  if (cluster.role() != cs::Role::coordinator) return cs::Server(cluster).join();
  cs::ParameterServerStrategy strategy(cluster);
  const auto scope = strategy.scope();
  const cs::Variable<float> sum("sum", cs::Shape{1});
  cs::ClusterCoordinator coordinator(strategy);
  coordinator.run_on_every_worker<&add_one>(sum);
  std::printf("sum %.0f of %d workers\n", static_cast<double>(sum.pull()[0]), coordinator.workers());
  return 0;
}
