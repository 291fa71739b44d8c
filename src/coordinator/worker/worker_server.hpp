// worker_server.hpp -- the life of a worker: one thread runs closures, and talks to the coordinator in
// between; while a closure runs another thread does.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/cancellation_request.hpp"
#include "capstan/detail/per_worker.hpp"
#include "capstan/detail/remote_function.hpp"
#include "cluster/membership/coordinator_watch.hpp"
#include "cluster/membership/failure_detector.hpp"
#include "cluster/runtime.hpp"
#include "coordinator/scheduling/control_loop.hpp"
#include "protocol/closure_messages.hpp"
#include "protocol/report.hpp"
#include "strategy/context.hpp"

namespace capstan::coordinator {

class WorkerServer {
 public:
  explicit WorkerServer(std::shared_ptr<cluster::Runtime> runtime);
  ~WorkerServer() { runtime_->control().silence(); }
  WorkerServer(const WorkerServer&) = delete;
  WorkerServer& operator=(const WorkerServer&) = delete;

  /// Runs closures on the calling thread until the coordinator says that the job is over. Throws
  /// Error(unavailable) when the coordinator dies and does not come back, Error(aborted) when this worker
  /// counts as dead.
  void run();

  /// This worker's object of a recipe that the coordinator announced, made now if need be. Called by
  /// closures. Throws Error(failed_precondition) for a number that it did not announce, or has freed.
  std::shared_ptr<void> resource(std::uint64_t id);
  int index() const noexcept { return runtime_->self().index; }

 private:
  /// A closure as it came, in a buffer that it shares with the others of its message.
  struct Task {
    protocol::RunHeader header;
    transport::Bytes arguments;
    std::shared_ptr<const std::vector<std::byte>> batch;
    std::optional<std::chrono::steady_clock::time_point> begin_by = {};
  };
  struct PendingAnnouncement {
    transport::Bytes bytes;
    std::shared_ptr<const std::vector<std::byte>> batch;
  };

  void listen();
  void come_in();
  void await_ps();
  ControlLoop::Round round();
  void take(const transport::Message& message);
  /// REQUIRES: the mutex.
  void revoke(const protocol::GiveBackHeader& which);
  /// REQUIRES: the mutex.
  bool is_at_one_of(const protocol::GiveBackHeader& which) const;
  void report(const protocol::ReportHeader& header);
  std::optional<Task> next_task();
  /// REQUIRES: the mutex, once the loop has started.
  bool ended() const { return over_ || fenced_ || !lost_.empty(); }
  std::chrono::milliseconds beat_or_end();
  void take_up_coordinator();
  /// REQUIRES: the mutex.
  void lose_coordinator(const std::string& verdict);
  void begin_anew();
  void learn_news();
  void free_resources();
  void execute(const Task& task);
  std::vector<std::byte> run_until_no_ps_dies(const detail::RemoteFunction& function, const Task& task);

  std::shared_ptr<cluster::Runtime> runtime_;
  strategy::Context context_;
  std::map<std::uint64_t, std::shared_ptr<void>> resources_;
  std::map<std::uint64_t, detail::ResourceRecipe> recipes_;  // announced, of objects that are not made yet
  transport::Peer* coordinator_ = nullptr;

  std::mutex mutex_;
  std::deque<Task> tasks_;
  std::optional<protocol::RunHeader> running_;  // the closure that runs
  std::shared_ptr<CancellationRequest> cancellation_ = std::make_shared<CancellationRequest>();  // its
  std::deque<PendingAnnouncement> news_;
  std::vector<std::uint64_t> to_free_;
  std::vector<std::byte> answers_;
  std::chrono::steady_clock::time_point first_answer_{};  // when the first of `answers_` was there
  std::vector<std::uint64_t> revoked_;                    // ids of closures that the coordinator gets back
  std::uint64_t failures_ = 0;                            // of closures for any worker
  std::vector<protocol::GiveBackHeader> to_give_back_;    // as asked; of the thread that drives the loop
  std::vector<protocol::ReportHeader> to_report_;         // likewise
  bool has_asked_to_leave_ = false;                       // of the same
  bool over_ = false;
  bool fenced_ = false;  // it counts as dead
  std::string fenced_why_;
  std::chrono::steady_clock::time_point end_by_{};  // when it has ended, whatever the closure does
  std::string lost_;                                // why there is no coordinator any more
  bool anew_ = false;                // another coordinator has come, and what is of the earlier one is to go
  bool answer_due_ = false;          // that has been done
  cluster::CoordinatorWatch watch_;  // of the thread that drives the loop
  std::chrono::milliseconds beat_every_;  // 0: never
  std::chrono::steady_clock::time_point next_beat_{};
  cluster::FailureDetector coordinator_detector_;
  bool has_agent_;
  ControlLoop loop_;  // last: its keeper uses all of the above
};

}  // namespace capstan::coordinator
