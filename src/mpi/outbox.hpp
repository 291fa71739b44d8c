// outbox.hpp -- messages to other ranks, which may never be received.
#pragma once

#include <chrono>
#include <memory>

#include "mpi/communicator.hpp"

namespace capstan::mpi {

/// Messages that have been sent and may not have been received.
class Outbox {
 public:
  explicit Outbox(const Communicator& communicator);
  /// Gives last words two seconds to arrive. What nobody has received by then stays, since MPI may still read
  /// it.
  ~Outbox();
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  void send(int to, int tag, Bytes bytes);
  /// Whether all have been received by then.
  bool wait(std::chrono::steady_clock::time_point deadline);

 private:
  struct Sent;
  std::unique_ptr<Sent> sent_;
};

}  // namespace capstan::mpi
