// closure_scheduler.hpp -- interface of the closure scheduler for saves and restores.
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

  /// Blocks until every running closure has ended; no other begins before `release`. Calls nest. Throws the
  /// error of a closure that failed, after releasing. REQUIRES: the caller schedules nothing meanwhile.
  virtual void hold() = 0;
  virtual void release() = 0;

  /// Numbers closures from `next` on. REQUIRES: `next` is above all numbers so far: no ps may have seen one
  /// of the new numbers.
  virtual void number_from(std::uint64_t next) = 0;
};

}  // namespace capstan::strategy
