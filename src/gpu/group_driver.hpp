// group_driver.hpp -- executes the collective calls of a Communicator.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gpu/communicator.hpp"

namespace capstan::gpu {

/// Used by one thread at a time.
class GroupDriver {
 public:
  GroupDriver() = default;
  virtual ~GroupDriver() = default;
  GroupDriver(const GroupDriver&) = delete;
  GroupDriver& operator=(const GroupDriver&) = delete;

  /// Enqueues the call on all streams. REQUIRES: one part per stream; count > 0. Throws Error(internal).
  virtual void enqueue(const GroupCall& call, std::span<const Part> parts) = 0;
  /// Returns a description of an asynchronous error, or "".
  virtual std::string failure() = 0;
  /// Releases streams that wait in enqueued calls; the content of arrays is unspecified then. Returns at
  /// once: the teardown runs in async_teardown().
  virtual void abort() noexcept = 0;
};

std::unique_ptr<GroupDriver> make_stand_in_driver(std::vector<const Stream*> streams);

namespace real {

/// Implemented by NCCL; without NCCL make_group_driver throws Error(unimplemented).
std::string why_no_group();
std::unique_ptr<GroupDriver> make_group_driver(std::vector<const Stream*> streams);

}  // namespace real
}  // namespace capstan::gpu
