// mpi_ranks.cpp -- exchange of roles, and a barrier at which the coordinator sleeps.
#include "perf/bench/mpi_ranks.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

namespace capstan::perf {

MpiRanks::MpiRanks(Role role) : role_(role) {
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int number = static_cast<int>(role);
  std::vector<int> roles(static_cast<std::size_t>(size));
  MPI_Allgather(&number, 1, MPI_INT, roles.data(), 1, MPI_INT, MPI_COMM_WORLD);
  for (int rank = 0; rank < size; ++rank) {
    const auto other = static_cast<Role>(roles[static_cast<std::size_t>(rank)]);
    if (other == Role::ps) ps_.push_back(rank);
    if (other == Role::worker) workers_.push_back(rank);
  }
  MPI_Comm_split(MPI_COMM_WORLD, role_ == Role::worker ? 0 : MPI_UNDEFINED, rank_, &worker_comm_);
}

MpiRanks::~MpiRanks() {
  if (worker_comm_ != MPI_COMM_NULL) MPI_Comm_free(&worker_comm_);
}

int MpiRanks::worker_index() const {
  return static_cast<int>(std::find(workers_.begin(), workers_.end(), rank_) - workers_.begin());
}

void MpiRanks::barrier() const {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (int done = 0; done == 0;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done == 0 && role_ == Role::coordinator) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

std::vector<double> MpiRanks::slowest(std::vector<double> local, int samples) const {
  local.resize(static_cast<std::size_t>(samples), 0);
  std::vector<double> all(local.size(), 0);
  barrier();
  MPI_Reduce(local.data(), all.data(), samples, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  return all;
}

bool MpiRanks::true_on_all(bool local) const {
  int all = local ? 1 : 0;
  barrier();
  MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return all != 0;
}

}  // namespace capstan::perf
