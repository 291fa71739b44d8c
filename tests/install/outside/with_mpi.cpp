// with_mpi.cpp -- a program that initializes MPI and creates a cluster from its ranks.
#include <mpi.h>

#include <capstan/cluster.hpp>
#include <capstan/mpi.hpp>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {
    const capstan::Cluster cluster = capstan::cluster_from(MPI_COMM_WORLD);
    if (cluster.role() != capstan::Role::coordinator) capstan::Server(cluster).join();
  }
  MPI_Finalize();
}
