// dies_in_mpi.cpp -- a rank that is killed when all ranks are in MPI_Init.
#include <mpi.h>
#include <signal.h>

int main(int argc, char** argv) {
  // Returns when every rank has called it: what others did before is done.
  MPI_Init(&argc, &argv);
  return raise(SIGKILL);
}
