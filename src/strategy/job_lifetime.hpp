// job_lifetime.hpp -- begins and ends the job of a strategy, and runs the ps of an embedded cluster.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "cluster/runtime.hpp"

namespace capstan::strategy {

/// Constructed before the strategy uses a fabric, and destroyed after the strategy has released all fabrics.
class JobLifetime {
 public:
  /// Begins the job. Throws Error(failed_precondition) if the runtime has a job that was not destroyed, or if
  /// an earlier job ended with end(). An embedded cluster can begin another job after that.
  explicit JobLifetime(std::shared_ptr<cluster::Runtime> runtime);
  ~JobLifetime();
  JobLifetime(const JobLifetime&) = delete;
  JobLifetime& operator=(const JobLifetime&) = delete;

  const std::shared_ptr<cluster::Runtime>& runtime() const noexcept { return runtime_; }

  /// Starts a thread for each ps of an embedded cluster.
  void start_embedded_ps();
  /// Notifies the other ranks that the job has ended, and joins the embedded ps. Called at most once. Without
  /// this call, the destructor notifies no rank, and the runtime accepts another job. REQUIRES: the calling
  /// thread progresses the control fabric.
  void end();

 private:
  std::shared_ptr<cluster::Runtime> runtime_;
  std::vector<std::jthread> embedded_ps_;
  bool over_ = false;
};

}  // namespace capstan::strategy
