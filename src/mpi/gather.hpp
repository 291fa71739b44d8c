// gather.hpp -- what every rank has to say, without waiting for those that do not say it.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "mpi/communicator.hpp"

namespace capstan::mpi {

/// Every rank's bytes, on their way to rank 0 or to all. Collective: every rank makes the same ones in the
/// same order. What MPI may still read or write when this object goes stays.
class Gather {
 public:
  Gather(const Communicator& communicator, std::span<const std::byte> mine, bool everywhere);
  ~Gather();
  Gather(const Gather&) = delete;
  Gather& operator=(const Gather&) = delete;

  /// Goes on only while it is asked.
  bool done();
  /// By rank; nothing on ranks other than 0, unless it goes everywhere. REQUIRES: done.
  std::vector<Bytes> parts() const;

 private:
  void send();

  struct Call;
  std::unique_ptr<Call> call_;
};

}  // namespace capstan::mpi
