// task_queue.hpp -- the closures that a worker has received, and its answers that were not sent yet.
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

  /// Adds the closures of a kRunClosures message. Those for any worker are revoked instead if the coordinator
  /// sent them before it knew of the last failure on this worker.
  void add(const protocol::BatchHeader& header, const transport::Message& message);
  /// Returns the next closure, which counts as running until finish(); nothing if there is none, or if the
  /// queue is outdated.
  std::optional<Task> next();
  /// Stores the answer to the closure that runs: `result`, or the text of its error if `code` is not ok. A
  /// failure of a closure for any worker revokes the others that are queued. Returns true if answers should
  /// be sent before the queue is empty.
  bool finish(const Task& task, Code code, std::span<const std::byte> result, Clock::time_point begin,
              Clock::time_point end);

  /// Revokes queued closures, and requests the cancellation of the running one if `which` names it. Returns
  /// that request, or null; the caller runs its callbacks.
  std::shared_ptr<CancellationRequest> revoke(const protocol::GiveBackHeader& which);
  /// Returns and removes the ids of revoked closures, the highest first.
  std::vector<std::uint64_t> take_revoked();
  /// Returns and removes the answers: a DoneHeader and the bytes of each. Empty while outdated.
  std::vector<std::byte> take_answers();

  /// Returns and removes the announcements that came with closures, in order.
  std::vector<protocol::Announcement> take_announcements();
  /// Per-worker objects that no closure names any more.
  void free_objects(std::span<const std::uint64_t> ids);
  std::vector<std::uint64_t> take_freed();

  /// The coordinator has died and will have these closures run elsewhere.
  void drop_queued();
  /// Another coordinator replaces the previous one: drops all that the previous one sent. The queue is
  /// outdated until resume(): no closure starts, answers are dropped, and a failure revokes nothing.
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

  // REQUIRE the mutex.
  void revoke_queued(const protocol::GiveBackHeader& which);
  bool is_running_one_of(const protocol::GiveBackHeader& which) const;

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
