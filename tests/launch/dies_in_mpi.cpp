// dies_in_mpi.cpp -- a rank that dies once all ranks have called MPI_Init.
#include <mpi.h>
#include <signal.h>

int main(int argc, char** argv) {
  // Returns once every rank has called it, so all ranks have finished their earlier work.
  MPI_Init(&argc, &argv);
  return raise(SIGKILL);
}
