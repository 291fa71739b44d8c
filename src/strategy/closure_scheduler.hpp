// closure_scheduler.hpp -- what saves and restores need of the scheduler that runs closures on the workers.
#pragma once

#include <cstdint>
#include <functional>

#include "transport/fabric.hpp"

namespace capstan::strategy {

/// Implemented by the coordinator layer, which registers it with its Strategy. Thread-safe.
class ClosureScheduler {
 public:
  virtual ~ClosureScheduler() = default;

  /// Progresses the control fabric until `done` returns true; false if the deadline passes first.
  virtual bool wait_until(const std::function<bool()>& done, transport::Deadline deadline) = 0;

  /// Blocks until every closure that a worker has begun has ended; no other begins until `release`. Calls
  /// nest. Throws the error of a closure that failed, and is undone then. The caller schedules nothing.
  virtual void hold() = 0;
  virtual void release() = 0;

  /// Numbers closures from `next` on, which is above all numbers so far: no ps has seen any of them.
  virtual void number_from(std::uint64_t next) = 0;
};

}  // namespace capstan::strategy
