// worker_server.hpp -- the main loop of a worker. The main thread runs closures, and exchanges messages with
// the coordinator between them; while a closure runs, the control loop's keeper thread does.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "capstan/detail/remote_function.hpp"
#include "cluster/membership/coordinator_watch.hpp"
#include "cluster/runtime.hpp"
#include "coordinator/scheduling/control_loop.hpp"
#include "coordinator/worker/per_worker_objects.hpp"
#include "coordinator/worker/task_queue.hpp"
#include "coordinator/worker/worker_heartbeat.hpp"
#include "protocol/report.hpp"
#include "strategy/context.hpp"

namespace capstan::coordinator {

class WorkerServer {
 public:
  explicit WorkerServer(std::shared_ptr<cluster::Runtime> runtime);
  ~WorkerServer() { runtime_->control().remove_handlers(); }
  WorkerServer(const WorkerServer&) = delete;
  WorkerServer& operator=(const WorkerServer&) = delete;

  /// Runs closures on the calling thread until the coordinator ends the job. Throws Error(unavailable) if the
  /// coordinator dies and is not restarted, Error(aborted) if this worker was fenced.
  void run();

  /// Returns this worker's object of a recipe that the coordinator announced; creates it if necessary. Called
  /// by closures. Throws what PerWorkerObjects::at throws.
  std::shared_ptr<void> resource(std::uint64_t id) { return objects_.at(id, runtime_->self().name()); }
  int index() const noexcept { return runtime_->self().index; }

 private:
  /// Why this worker ends, and by when. A later reason replaces it only if that is `fenced`.
  struct End {
    enum class Reason : std::uint8_t { none, job_over, coordinator_lost, fenced };
    Reason reason = Reason::none;
    std::string text;
    std::chrono::steady_clock::time_point by{};  // at this time the process exits, even if a closure runs
  };

  void listen();
  void join_job();
  void await_ps();
  ControlLoop::Round round();
  void end(End::Reason reason, std::string text, std::chrono::milliseconds grace);
  End::Reason ending() const;
  bool ended() const { return ending() != End::Reason::none; }
  void report(const protocol::ReportHeader& header);
  std::chrono::milliseconds send_heartbeat_or_exit();
  void follow_coordinator();
  void discard_previous_job();
  void learn_announcements();
  void free_objects();
  void execute(const Task& task);
  std::vector<std::byte> run_until_no_ps_dies(const detail::RemoteFunction& function, const Task& task);

  std::shared_ptr<cluster::Runtime> runtime_;
  strategy::Context context_;
  PerWorkerObjects objects_;  // of the thread that runs closures
  TaskQueue tasks_;
  mutable std::mutex mutex_;  // of end_
  End end_;
  std::atomic<bool> answer_due_{false};  // a restarted coordinator must be told that this worker follows it
  const bool has_agent_;

  // Used by the thread that drives the loop:
  transport::Peer* coordinator_ = nullptr;
  cluster::CoordinatorWatch watch_;
  WorkerHeartbeat heartbeat_;
  std::vector<protocol::GiveBackHeader> to_give_back_;  // requests for closures that were not answered yet
  std::vector<protocol::ReportHeader> to_report_;       // requests for reports that were not answered yet
  bool has_asked_to_leave_ = false;
  ControlLoop loop_;  // last: its keeper uses all of the above
};

}  // namespace capstan::coordinator
