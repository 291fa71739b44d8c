// rank_group.hpp -- collective calls between the ranks of `capstan doctor`, outside of UCX and with a
// deadline.
//
// Every rank makes the same calls in the same order. A waiting rank calls `progress` repeatedly, so that it
// can serve ranks that are still working. Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace capstan::launch::doctor {

using Blob = std::vector<std::byte>;

class RankGroup {
 public:
  virtual ~RankGroup() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Returns the contributions of all ranks, indexed by rank. Throws Error: deadline_exceeded after 180 s,
  /// unavailable if the forked process died; the message contains `what`. No calls are allowed after an
  /// error, since the MPI call is still pending.
  std::vector<Blob> all_gather(std::span<const std::byte> mine, const std::string& what,
                               const std::function<void()>& progress = {}) {
    return gather(mine, what, progress, /*everywhere=*/true);
  }
  /// Like all_gather() on rank 0. Other ranks get an empty list and may return before rank 0 has the data.
  std::vector<Blob> gather_to_root(std::span<const std::byte> mine, const std::string& what) {
    return gather(mine, what, {}, /*everywhere=*/false);
  }
  /// Returns once all ranks have called it.
  void barrier(const std::string& what, const std::function<void()>& progress = {}) {
    (void)all_gather({}, what, progress);
  }

 protected:
  /// Time that the slowest rank may spend between two calls.
  static constexpr std::chrono::seconds kTimeout{180};

  virtual std::vector<Blob> gather(std::span<const std::byte> mine, const std::string& what,
                                   const std::function<void()>& progress, bool everywhere) = 0;
};

/// Forks a child that runs `child_main` as rank 1 and then exits; this process is rank 0.
/// REQUIRES: no other thread runs, and UCX and MPI are unused, since none of these survives a fork. Throws
/// Error(internal).
std::unique_ptr<RankGroup> fork_rank_group(const std::function<void(RankGroup&)>& child_main);

/// Initializes MPI for a group of all ranks; the destructor finalizes it. If either takes longer than 60 s,
/// `give_up` is called from another thread and must not return. Throws Error(internal). MPI_Init may also end
/// the process: see supervised_child.hpp.
std::unique_ptr<RankGroup> mpi_rank_group(std::function<void(const std::string&)> give_up);

}  // namespace capstan::launch::doctor
