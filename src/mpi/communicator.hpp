// communicator.hpp -- communicators of the ranks that MPI started, for use until UCX connects the ranks.
//
// Only src/mpi includes <mpi.h>, and only in its sources, so that other code does not depend on the MPI
// implementation. Functions throw Error(internal) with MPI's error text. Used by one thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace capstan::mpi {

using Bytes = std::vector<std::byte>;

/// Calls MPI_Init. Errors on MPI_COMM_WORLD then throw instead of ending the process.
void start();
/// Calls MPI_Finalize, which waits for all other ranks.
void end() noexcept;
/// Returns true if this process has called MPI_Init, even if it has finalized MPI since.
bool was_started();

struct Message {
  int from = 0;
  Bytes bytes;
};

/// A group of ranks. Copies refer to the same communicator.
class Communicator {
 public:
  struct Handle;
  explicit Communicator(std::shared_ptr<const Handle> handle) : handle_(std::move(handle)) {}
  /// All ranks of the job. REQUIRES: start() was called.
  static Communicator world();

  int rank() const;
  int size() const;
  /// Receives an available message with this tag, from rank `from` or from any rank; nullopt if there is
  /// none.
  std::optional<Message> take(int tag, std::optional<int> from = std::nullopt) const;
  /// Broadcasts rank 0's bytes. Collective; the size must be equal on all ranks.
  void broadcast(std::span<std::byte> bytes) const;

  const Handle& handle() const noexcept { return *handle_; }

 private:
  std::shared_ptr<const Handle> handle_;
};

/// A non-blocking duplication of a communicator, with its own tags. It completes once all ranks have
/// started it. If it is incomplete on destruction, its memory is leaked, because MPI may still write to it.
class Duplicate {
 public:
  explicit Duplicate(const Communicator& original);
  ~Duplicate();
  Duplicate(const Duplicate&) = delete;
  Duplicate& operator=(const Duplicate&) = delete;

  /// Polls; returns true once the duplication is complete.
  bool done();
  /// REQUIRES: done() has returned true.
  Communicator communicator() const;
  /// Frees the communicator; collective. REQUIRES: done() has returned true.
  void free() noexcept;

 private:
  struct Call;
  std::unique_ptr<Call> call_;
};

}  // namespace capstan::mpi
