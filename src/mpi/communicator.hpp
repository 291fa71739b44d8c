// communicator.hpp -- ranks that MPI has started, and what they say to each other until they meet by UCX.
//
// src/mpi is the one layer that includes <mpi.h>, and its headers do not: what is compiled with one MPI and
// not with another is in here. Functions throw Error(internal) with MPI's own words. One thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace capstan::mpi {

using Bytes = std::vector<std::byte>;

/// MPI_Init. What fails on the world's communicator is an Error from then on, and does not end the process.
void start();
/// MPI_Finalize, which waits for all other ranks.
void end() noexcept;

struct Message {
  int from = 0;
  Bytes bytes;
};

/// Ranks that can talk to each other. A copy of the object is the same communicator.
class Communicator {
 public:
  struct Handle;
  explicit Communicator(std::shared_ptr<const Handle> handle) : handle_(std::move(handle)) {}
  /// All ranks of the job. REQUIRES: MPI is started.
  static Communicator world();

  int rank() const;
  int size() const;
  /// A message with this tag that has come, from this rank or from any; nothing when there is none.
  std::optional<Message> take(int tag, std::optional<int> from = std::nullopt) const;
  /// Rank 0's bytes on every rank. Collective, and of the same size everywhere.
  void broadcast(std::span<std::byte> bytes) const;

  const Handle& handle() const noexcept { return *handle_; }

 private:
  std::shared_ptr<const Handle> handle_;
};

/// A communicator of the same ranks on which any tag is free, on its way: it is there when all of them have
/// asked for one. What MPI may still write to when this object goes stays.
class Duplicate {
 public:
  explicit Duplicate(const Communicator& original);
  ~Duplicate();
  Duplicate(const Duplicate&) = delete;
  Duplicate& operator=(const Duplicate&) = delete;

  bool done();
  /// REQUIRES: done.
  Communicator communicator() const;
  /// Frees it, with all ranks together. REQUIRES: done.
  void free() noexcept;

 private:
  struct Call;
  std::unique_ptr<Call> call_;
};

}  // namespace capstan::mpi
