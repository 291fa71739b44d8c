// gathering.hpp -- what the ranks of a doctor say to each other outside of UCX: collective calls with a
// deadline.
//
// Every rank makes the same calls in the same order. While it waits a rank runs `meanwhile`, which serves
// those that are still at work. One thread at a time.
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

class Gathering {
 public:
  virtual ~Gathering() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// What every rank gave, by rank. Throws Error(deadline_exceeded) that says what was waited for; no further
  /// call may be made then, since MPI still has the call.
  std::vector<Blob> all_gather(std::span<const std::byte> mine, const std::string& what,
                               const std::function<void()>& meanwhile = {}) {
    return gather(mine, what, meanwhile, /*everywhere=*/true);
  }
  /// The same on rank 0; nothing on the others, which may go on before it is there.
  std::vector<Blob> gather_at_zero(std::span<const std::byte> mine, const std::string& what) {
    return gather(mine, what, {}, /*everywhere=*/false);
  }
  /// Returns when all have called it.
  void meet(const std::string& what, const std::function<void()>& meanwhile = {}) {
    (void)all_gather({}, what, meanwhile);
  }

 protected:
  /// How long the slowest rank may need for what it does between two calls.
  static constexpr std::chrono::seconds kTimeout{180};

  virtual std::vector<Blob> gather(std::span<const std::byte> mine, const std::string& what,
                                   const std::function<void()>& meanwhile, bool everywhere) = 0;
};

/// This process, and a child of it that runs `live` as rank 1 and ends when that returns. REQUIRES: no other
/// thread runs, and UCX and MPI were not used before, since a child inherits none of them well. Throws
/// Error(internal).
std::unique_ptr<Gathering> gather_with_a_second_process(const std::function<void(Gathering&)>& live);

/// Starts MPI, gathers over all of its ranks, and ends MPI with the object. Should MPI not start or end
/// within a minute, `give_up` is called from another thread; it must not return. Throws Error(internal).
/// Where it cannot start MPI_Init ends the process: see keeper.hpp.
std::unique_ptr<Gathering> gather_by_mpi(std::function<void(const std::string&)> give_up);

}  // namespace capstan::launch::doctor
