// mpi_ranks.hpp -- the ranks of each role, for the rivals: MPI code with which Capstan is compared.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "capstan/cluster.hpp"

namespace capstan::perf {

class MpiRanks {
 public:
  /// Collective over MPI_COMM_WORLD.
  explicit MpiRanks(Role role);
  ~MpiRanks();
  MpiRanks(const MpiRanks&) = delete;
  MpiRanks& operator=(const MpiRanks&) = delete;

  Role role() const { return role_; }
  int rank() const { return rank_; }
  const std::vector<int>& ps() const { return ps_; }
  const std::vector<int>& workers() const { return workers_; }
  /// Communicator of the workers; MPI_COMM_NULL on other ranks.
  MPI_Comm worker_comm() const { return worker_comm_; }
  /// Index of this rank among the workers. REQUIRES: this rank is a worker.
  int worker_index() const;

  /// Barrier of all ranks. A coordinator sleeps meanwhile, so that it takes no CPU time from the others; a ps
  /// polls, since it may have to progress one-sided operations.
  void barrier() const;
  /// Collective. Cuts `local` to `samples` elements, or adds zeros. Returns the element-wise maximum over all
  /// ranks on rank 0, zeros on other ranks.
  std::vector<double> slowest(std::vector<double> local, int samples) const;
  /// Collective. Returns true if `local` is true on all ranks.
  bool true_on_all(bool local) const;

 private:
  Role role_;
  int rank_ = 0;
  std::vector<int> ps_;
  std::vector<int> workers_;
  MPI_Comm worker_comm_ = MPI_COMM_NULL;
};

}  // namespace capstan::perf
