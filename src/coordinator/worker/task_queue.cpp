// task_queue.cpp -- queues closures, revokes them, collects their answers.
#include "coordinator/worker/task_queue.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/deadline.hpp"
#include "capstan/serialize.hpp"

namespace capstan::coordinator {
namespace {

/// Answers are sent when they have this size, when the first one has waited for this long, or when the queue
/// is empty.
constexpr std::size_t kAnswerBytes = transport::kPieceBytes / 2;
constexpr std::chrono::microseconds kAnswerWaits{50};

}  // namespace

void TaskQueue::add(const protocol::BatchHeader& header, const transport::Message& message) {
  const auto batch =
      std::make_shared<const std::vector<std::byte>>(message.payload.begin(), message.payload.end());
  Reader in(*batch);
  const std::lock_guard lock(mutex_);
  const bool precedes_failure = header.failures < failures_;
  for (std::uint64_t i = 0; i < header.closures; ++i) {
    const auto run = read<protocol::RunHeader>(in);
    const transport::Bytes packed = in.view(run.argument_bytes);
    if (precedes_failure && run.pinned == 0) {
      revoked_.push_back(run.id);
      continue;
    }
    Task& task = tasks_.emplace_back(Task{run, packed, batch});
    if (run.timed == 0) continue;
    Reader arguments(task.arguments);
    const std::chrono::nanoseconds left(read<std::int64_t>(arguments));
    task.begin_by = deadline_after(left);
    task.arguments = arguments.view(arguments.left());
  }
  if (header.announcement_bytes > 0) announcements_.push_back({in.view(header.announcement_bytes), batch});
}

std::optional<Task> TaskQueue::next() {
  const std::lock_guard lock(mutex_);
  if (outdated_ || tasks_.empty()) return std::nullopt;
  Task task = std::move(tasks_.front());
  tasks_.pop_front();
  running_ = task.header;
  task.cancellation = cancellation_;
  return task;
}

bool TaskQueue::finish(const Task& task, Code code, std::span<const std::byte> result,
                       Clock::time_point begin, Clock::time_point end) {
  const protocol::DoneHeader header{task.header.id, result.size(),
                                    static_cast<std::uint64_t>(std::chrono::nanoseconds(end - begin).count()),
                                    static_cast<std::uint64_t>(code)};
  const std::lock_guard lock(mutex_);
  if (answers_.empty()) first_answer_ = begin;
  const auto head = transport::as_bytes(header);
  answers_.insert(answers_.end(), head.begin(), head.end());
  answers_.insert(answers_.end(), result.begin(), result.end());
  running_.reset();
  if (cancellation_->requested()) cancellation_ = std::make_shared<CancellationRequest>();
  const bool revokes_others = code != Code::ok && task.header.pinned == 0 && !outdated_;
  if (revokes_others) {
    ++failures_;
    revoke_queued({tasks_.size(), 0});
  }
  return !tasks_.empty() &&
         (revokes_others || answers_.size() >= kAnswerBytes || end - first_answer_ >= kAnswerWaits);
}

std::shared_ptr<CancellationRequest> TaskQueue::revoke(const protocol::GiveBackHeader& request) {
  const std::lock_guard lock(mutex_);
  revoke_queued(request);
  if (!is_running_one_of(request)) return nullptr;
  cancellation_->request();
  return cancellation_;
}

void TaskQueue::revoke_queued(const protocol::GiveBackHeader& request) {
  std::uint64_t count = 0;
  for (auto task = tasks_.end(); task != tasks_.begin();) {
    --task;
    // The deadline has passed by the coordinator's clock: the task must not start.
    if (task->header.id == request.expired_id) task->begin_by = Clock::time_point::min();
    if (task->header.pinned != 0 ||
        (count >= request.max_count && task->header.id >= request.cancelled_below))
      continue;
    ++count;
    revoked_.push_back(task->header.id);
    task = tasks_.erase(task);
  }
}

bool TaskQueue::is_running_one_of(const protocol::GiveBackHeader& request) const {
  if (!running_ || running_->pinned != 0 || running_->uncancellable != 0) return false;
  return running_->id < request.cancelled_below || running_->id == request.expired_id;
}

std::vector<std::uint64_t> TaskQueue::take_revoked() {
  const std::lock_guard lock(mutex_);
  std::sort(revoked_.begin(), revoked_.end(), std::greater<>());
  return std::exchange(revoked_, {});
}

std::vector<std::byte> TaskQueue::take_answers() {
  const std::lock_guard lock(mutex_);
  if (outdated_) answers_.clear();
  return std::exchange(answers_, {});
}

std::vector<protocol::Announcement> TaskQueue::take_announcements() {
  std::deque<PackedAnnouncement> packed;
  {
    const std::lock_guard lock(mutex_);
    packed.swap(announcements_);
  }
  std::vector<protocol::Announcement> announcements;
  announcements.reserve(packed.size());
  for (const PackedAnnouncement& one : packed) {
    announcements.push_back(from_bytes<protocol::Announcement>(one.bytes));
  }
  return announcements;
}

void TaskQueue::free_objects(std::span<const std::uint64_t> ids) {
  const std::lock_guard lock(mutex_);
  freed_.insert(freed_.end(), ids.begin(), ids.end());
}

std::vector<std::uint64_t> TaskQueue::take_freed() {
  const std::lock_guard lock(mutex_);
  return std::exchange(freed_, {});
}

void TaskQueue::drop_queued() {
  const std::lock_guard lock(mutex_);
  tasks_.clear();
  revoked_.clear();
}

void TaskQueue::replace_coordinator() {
  const std::lock_guard lock(mutex_);
  tasks_.clear();
  announcements_.clear();
  revoked_.clear();
  freed_.clear();
  failures_ = 0;
  outdated_ = true;
}

bool TaskQueue::outdated() const {
  const std::lock_guard lock(mutex_);
  return outdated_;
}

void TaskQueue::resume() {
  const std::lock_guard lock(mutex_);
  answers_.clear();
  failures_ = 0;
  outdated_ = false;
}

std::size_t TaskQueue::size() const {
  const std::lock_guard lock(mutex_);
  return tasks_.size();
}

bool TaskQueue::has_work() const {
  const std::lock_guard lock(mutex_);
  return outdated_ || !tasks_.empty() || !freed_.empty();
}

}  // namespace capstan::coordinator
