// gather.hpp -- a non-blocking gather, which does not wait for missing ranks.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "mpi/communicator.hpp"

namespace capstan::mpi {

/// Gathers bytes of every rank on rank 0 or on all ranks. Collective: all ranks create the same gathers in
/// the same order. If a gather is incomplete on destruction, its memory is leaked, because MPI may still
/// access it.
class Gather {
 public:
  Gather(const Communicator& communicator, std::span<const std::byte> own, bool to_all);
  ~Gather();
  Gather(const Gather&) = delete;
  Gather& operator=(const Gather&) = delete;

  /// Polls; returns true once the gather is complete. The gather makes progress only during this call.
  bool done();
  /// The parts, by rank; empty on ranks that do not receive them. REQUIRES: done() has returned true.
  std::vector<Bytes> parts() const;

 private:
  void send();

  struct Call;
  std::unique_ptr<Call> call_;
};

}  // namespace capstan::mpi
