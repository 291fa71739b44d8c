// interim_control.hpp -- drives the coordinator's control fabric while there is no ClusterCoordinator.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "cluster/runtime.hpp"
#include "transport/fabric.hpp"

namespace capstan::strategy {

/// Answers a ps that has lost its replica. The ps acknowledges nothing before that answer, so a program that
/// creates variables before its ClusterCoordinator would time out.
class InterimControl {
 public:
  /// Registers the handler. The caller still drives the fabric.
  explicit InterimControl(cluster::Runtime& runtime);
  ~InterimControl();
  InterimControl(const InterimControl&) = delete;
  InterimControl& operator=(const InterimControl&) = delete;

  /// Starts a thread that drives the fabric, in a job whose ps have replicas.
  void start();
  /// Ends the thread. The caller drives the fabric from then on.
  void stop();
  /// Drives the fabric in the calling thread until `done` returns true; returns false if the deadline passes
  /// first.
  bool wait(const std::function<bool()>& done, transport::Deadline deadline);

 private:
  void drop_replica_of(int ps);

  cluster::Runtime& runtime_;
  std::mutex mutex_;  // held by the thread that drives the fabric
  std::condition_variable_any stopped_;
  std::jthread thread_;
};

}  // namespace capstan::strategy
