// job_lifetime.hpp -- the job of a strategy: its begin, its embedded ps, its end for all ranks.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "cluster/runtime.hpp"

namespace capstan::strategy {

/// Exists before the strategy uses a fabric, and until it has released all of them.
class JobLifetime {
 public:
  /// Begins the job. Throws Error(failed_precondition) if the runtime has or had another one.
  explicit JobLifetime(std::shared_ptr<cluster::Runtime> runtime);
  ~JobLifetime();
  JobLifetime(const JobLifetime&) = delete;
  JobLifetime& operator=(const JobLifetime&) = delete;

  const std::shared_ptr<cluster::Runtime>& runtime() const noexcept { return runtime_; }

  /// Starts a thread for each ps of an embedded cluster.
  void start_embedded_ps();
  /// Sends the other ranks the end of the job and joins the embedded ps. REQUIRES: the calling thread drives
  /// the control fabric. To be called once; without it the job counts as aborted.
  void end();

 private:
  std::shared_ptr<cluster::Runtime> runtime_;
  std::vector<std::jthread> embedded_ps_;
  bool over_ = false;
};

}  // namespace capstan::strategy
