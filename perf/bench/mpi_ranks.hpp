// mpi_ranks.hpp -- the ranks of a cluster as an MPI program sees them, for rivals.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "capstan/cluster.hpp"

namespace capstan::perf {

class MpiRanks {
 public:
  /// Collective over MPI_COMM_WORLD.
  explicit MpiRanks(Role mine);
  ~MpiRanks();
  MpiRanks(const MpiRanks&) = delete;
  MpiRanks& operator=(const MpiRanks&) = delete;

  Role role() const { return role_; }
  int rank() const { return rank_; }
  const std::vector<int>& ps() const { return ps_; }
  const std::vector<int>& workers() const { return workers_; }
  /// The workers alone; MPI_COMM_NULL elsewhere.
  MPI_Comm worker_comm() const { return worker_comm_; }
  int worker_index() const;

  /// Waits for all ranks. A coordinator sleeps meanwhile, so that it takes no core from those that work; a ps
  /// spins, because it may have to answer.
  void meet() const;
  /// Element-wise over the workers, on rank 0: what the slowest took.
  std::vector<double> slowest(std::vector<double> mine, int samples) const;
  bool all_agree(bool mine) const;

 private:
  Role role_;
  int rank_ = 0;
  std::vector<int> ps_;
  std::vector<int> workers_;
  MPI_Comm worker_comm_ = MPI_COMM_NULL;
};

}  // namespace capstan::perf
