// outbox.hpp -- non-blocking sends to ranks that may never receive them.
#pragma once

#include <chrono>
#include <memory>

#include "mpi/communicator.hpp"

namespace capstan::mpi {

/// Sent messages, and their buffers until they are received. Used by one thread at a time.
class Outbox {
 public:
  explicit Outbox(const Communicator& communicator);
  /// Waits up to two seconds for delivery. Leaks the buffers of undelivered messages, since MPI may still
  /// read them.
  ~Outbox();
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  void send(int to, int tag, Bytes bytes);
  /// Blocks until all messages have been received; returns false if the deadline passes first.
  bool wait(std::chrono::steady_clock::time_point deadline);

 private:
  struct Sent;
  std::unique_ptr<Sent> sent_;
};

}  // namespace capstan::mpi
