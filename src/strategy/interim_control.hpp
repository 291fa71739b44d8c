// interim_control.hpp -- the coordinator's control fabric while there is no ClusterCoordinator.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "cluster/runtime.hpp"
#include "transport/fabric.hpp"

namespace capstan::strategy {

/// Answers a ps that has lost its replica. Until the ps has the answer it acknowledges nothing, so a program
/// that creates variables before its ClusterCoordinator would wait for it until a time-out.
class InterimControl {
 public:
  /// Registers the handler. The fabric is still the caller's.
  explicit InterimControl(cluster::Runtime& runtime);
  ~InterimControl();
  InterimControl(const InterimControl&) = delete;
  InterimControl& operator=(const InterimControl&) = delete;

  /// Starts a thread that drives the fabric, in a job whose ps have replicas.
  void start();
  /// Ends the thread. The fabric is the caller's from then on.
  void stop();
  /// Drives the fabric until `done` in the calling thread; false at the deadline.
  bool wait(const std::function<bool()>& done, transport::Deadline deadline);

 private:
  void drop_replica_of(int ps);

  cluster::Runtime& runtime_;
  std::mutex mutex_;  // of the thread that drives the fabric
  std::condition_variable_any stopped_;
  std::jthread thread_;
};

}  // namespace capstan::strategy
