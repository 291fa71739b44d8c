// mpi_ranks.hpp -- ranks and roles of a cluster for the MPI rivals.
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
  int worker_index() const;

  /// Barrier of all ranks. A coordinator sleeps meanwhile, so that it takes no CPU time from the others; a ps
  /// polls, since it may have to progress one-sided operations.
  void barrier() const;
  /// Element-wise maximum over the workers, on rank 0.
  std::vector<double> slowest(std::vector<double> local, int samples) const;
  /// Collective. Returns true if `local` is true on all ranks.
  bool all_agree(bool local) const;

 private:
  Role role_;
  int rank_ = 0;
  std::vector<int> ps_;
  std::vector<int> workers_;
  MPI_Comm worker_comm_ = MPI_COMM_NULL;
};

}  // namespace capstan::perf
