// task_queue.hpp -- closures that a worker has received, and its answers that were not sent yet.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/cancellation_request.hpp"
#include "protocol/closure_messages.hpp"
#include "transport/bytes.hpp"
#include "transport/fabric.hpp"

namespace capstan::coordinator {

/// A closure as it was received, in a buffer that it shares with the other closures of its message.
struct Task {
  protocol::RunHeader header;
  transport::Bytes arguments;
  std::shared_ptr<const std::vector<std::byte>> batch;
  std::optional<std::chrono::steady_clock::time_point> begin_by = {};
  std::shared_ptr<CancellationRequest> cancellation = {};  // set when the task starts to run
};

/// Thread-safe. The thread that drives the control fabric adds closures and sends answers; another thread
/// runs the closures, one at a time.
class TaskQueue {
 public:
  using Clock = std::chrono::steady_clock;

  /// Adds the closures of a kRunClosures message. If the coordinator sent it before it knew of the last
  /// failure on this worker, closures for any worker are revoked instead.
  void add(const protocol::BatchHeader& header, const transport::Message& message);
  /// Returns the next closure, which counts as running until finish(); nullopt if there is none or the queue
  /// is outdated.
  std::optional<Task> next();
  /// Stores the answer to the running closure: `result`, which is the text of the error if `code` is not ok.
  /// If a closure for any worker failed, revokes the queued closures for any worker. Returns true if answers
  /// should be sent before the queue is empty.
  bool finish(const Task& task, Code code, std::span<const std::byte> result, Clock::time_point begin,
              Clock::time_point end);

  /// Revokes queued closures, and requests the cancellation of the running one if `request` names it. Returns
  /// that request, or null; the caller runs its callbacks.
  std::shared_ptr<CancellationRequest> revoke(const protocol::GiveBackHeader& request);
  /// Returns and removes the ids of revoked closures, the highest first.
  std::vector<std::uint64_t> take_revoked();
  /// Returns and removes the answers: a DoneHeader and the bytes of each. Empty while outdated.
  std::vector<std::byte> take_answers();

  /// Returns and removes the announcements that came with closures, in order.
  std::vector<protocol::Announcement> take_announcements();
  /// Adds ids of per-worker objects to free, since no closure uses them any more; take_freed() returns them.
  void free_objects(std::span<const std::uint64_t> ids);
  std::vector<std::uint64_t> take_freed();

  /// Drops queued closures after the death of the coordinator, which will schedule them again elsewhere.
  void drop_queued();
  /// Drops everything that the previous coordinator process sent. Until resume(), the queue is outdated: no
  /// closure starts, answers are dropped, and failures revoke nothing.
  void replace_coordinator();
  bool outdated() const;
  void resume();

  std::size_t size() const;
  /// Returns true if the thread that runs closures has something to do.
  bool has_work() const;

 private:
  struct PackedAnnouncement {
    transport::Bytes bytes;
    std::shared_ptr<const std::vector<std::byte>> batch;
  };

  // REQUIRES for both: the caller holds the mutex.
  void revoke_queued(const protocol::GiveBackHeader& request);
  bool is_running_one_of(const protocol::GiveBackHeader& request) const;

  mutable std::mutex mutex_;
  std::deque<Task> tasks_;
  std::optional<protocol::RunHeader> running_;
  std::shared_ptr<CancellationRequest> cancellation_ =
      std::make_shared<CancellationRequest>();  // of running_
  std::deque<PackedAnnouncement> announcements_;
  std::vector<std::uint64_t> freed_;
  std::vector<std::byte> answers_;
  Clock::time_point first_answer_{};  // start of the closure whose answer is the first of `answers_`
  std::vector<std::uint64_t> revoked_;
  std::uint64_t failures_ = 0;  // of closures for any worker
  bool outdated_ = false;
};

}  // namespace capstan::coordinator
