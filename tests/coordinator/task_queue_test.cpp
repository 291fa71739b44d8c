// task_queue_test.cpp -- revocation, cancellation and replies of a worker's closures.
#include "coordinator/worker/task_queue.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "capstan/serialize.hpp"
#include "protocol/push_format.hpp"
#include "transport/message_types.hpp"

namespace capstan::coordinator {
namespace {

using Ids = std::vector<std::uint64_t>;
constexpr std::uint64_t kAlone = protocol::kForOneWorker;

class TaskQueueTest : public testing::Test {
 protected:
  /// Adds closures without arguments, sent by a coordinator that knows of `failures`.
  void add(const Ids& ids, std::uint64_t failures = 0, const protocol::Announcement* announcement = nullptr) {
    std::vector<std::byte> payload;
    for (const std::uint64_t id : ids) {
      const protocol::RunHeader run{.id = id, .pinned = static_cast<std::uint8_t>(id < kAlone ? 0 : 1)};
      const auto bytes = transport::as_bytes(run);
      payload.insert(payload.end(), bytes.begin(), bytes.end());
    }
    protocol::BatchHeader header{.closures = ids.size(), .failures = failures};
    if (announcement != nullptr) {
      const auto bytes = to_bytes(*announcement);
      header.announcement_bytes = bytes.size();
      payload.insert(payload.end(), bytes.begin(), bytes.end());
    }
    queue_.add(header, {transport::kRunClosures, 0, transport::as_bytes(header), payload});
  }
  std::uint64_t next_id() {
    const auto task = queue_.next();
    return task ? task->header.id : 0;
  }
  bool finish(const Task& task, Code code = Code::ok, TaskQueue::Clock::duration took = {}) {
    const auto begin = TaskQueue::Clock::now();
    return queue_.finish(task, code, std::vector<std::byte>(8), begin, begin + took);
  }
  std::vector<std::pair<std::uint64_t, Code>> answers() {
    std::vector<std::pair<std::uint64_t, Code>> found;
    const std::vector<std::byte> bytes = queue_.take_answers();
    Reader in(bytes);
    while (in.left() > 0) {
      const auto header = read<protocol::DoneHeader>(in);
      EXPECT_EQ(in.view(header.result_bytes).size(), 8U);
      found.emplace_back(header.id, static_cast<Code>(header.code));
    }
    return found;
  }

  TaskQueue queue_;
};

TEST_F(TaskQueueTest, ReturnsClosuresInOrder) {
  EXPECT_FALSE(queue_.has_work());
  add({1, 2});
  add({3});
  EXPECT_EQ(queue_.size(), 3U);
  EXPECT_EQ(next_id(), 1U);
  EXPECT_EQ(next_id(), 2U);
  EXPECT_EQ(next_id(), 3U);
  EXPECT_EQ(next_id(), 0U);
  EXPECT_FALSE(queue_.has_work());
}

TEST_F(TaskQueueTest, SendsRepliesEarlyOnlyIfOneHasWaited) {
  add({1, 2, 3});
  EXPECT_FALSE(finish(*queue_.next()));
  EXPECT_TRUE(finish(*queue_.next(), Code::ok, std::chrono::seconds(1)));
  EXPECT_FALSE(finish(*queue_.next(), Code::ok, std::chrono::seconds(1))) << "the queue is empty";
  EXPECT_EQ(answers(),
            (std::vector<std::pair<std::uint64_t, Code>>{{1, Code::ok}, {2, Code::ok}, {3, Code::ok}}));
  EXPECT_TRUE(answers().empty());
}

TEST_F(TaskQueueTest, FailureRevokesClosuresForAnyWorker) {
  add({1, 2, kAlone, 3});
  EXPECT_TRUE(finish(*queue_.next(), Code::internal)) << "the error is sent at once";
  EXPECT_EQ(queue_.take_revoked(), (Ids{3, 2}));
  add({4, kAlone + 1}, 0);  // sent before the coordinator knew of the failure
  EXPECT_EQ(queue_.take_revoked(), (Ids{4}));
  add({5}, 1);
  EXPECT_EQ(next_id(), kAlone);
  EXPECT_EQ(next_id(), kAlone + 1);
  EXPECT_EQ(next_id(), 5U);
}

TEST_F(TaskQueueTest, FailureOfAClosureForThisWorkerRevokesNone) {
  add({kAlone, 1});
  (void)finish(*queue_.next(), Code::internal);
  EXPECT_TRUE(queue_.take_revoked().empty());
  EXPECT_EQ(next_id(), 1U);
}

TEST_F(TaskQueueTest, RevokesTheLastClosuresAndThoseBelowAnId) {
  add({1, 2, 3, 4, 5});
  EXPECT_EQ(queue_.revoke({.max_count = 2}), nullptr);
  EXPECT_EQ(queue_.take_revoked(), (Ids{5, 4}));
  EXPECT_EQ(queue_.revoke({.cancelled_below = 3}), nullptr);
  EXPECT_EQ(queue_.take_revoked(), (Ids{2, 1}));
  EXPECT_EQ(next_id(), 3U);
}

TEST_F(TaskQueueTest, CancelsTheRunningClosureOnlyByItsId) {
  add({7, 8});
  const Task task = *queue_.next();
  EXPECT_EQ(queue_.revoke({.cancelled_below = 7}), nullptr);
  EXPECT_EQ(queue_.revoke({.expired_id = 7}), task.cancellation);
  EXPECT_TRUE(task.cancellation->requested());
  (void)finish(task, Code::cancelled);
  (void)queue_.take_revoked();
  add({9}, 1);
  EXPECT_FALSE(queue_.next()->cancellation->requested()) << "the request was for the previous closure";
}

TEST_F(TaskQueueTest, MarksAClosureAfterItsDeadlineAsExpired) {
  add({1, kAlone});
  (void)queue_.revoke({.expired_id = kAlone});
  (void)queue_.next();
  const auto task = queue_.next();
  ASSERT_TRUE(task && task->begin_by);
  EXPECT_EQ(*task->begin_by, TaskQueue::Clock::time_point::min());
}

TEST_F(TaskQueueTest, DropsClosuresOfAPreviousCoordinator) {
  const protocol::Announcement announcement{{}, {{.id = 4, .arguments = {}}}};
  add({1, 2}, 0, &announcement);
  queue_.free_objects(Ids{9});
  const Task running = *queue_.next();
  queue_.replace_coordinator();
  EXPECT_TRUE(queue_.outdated());
  EXPECT_TRUE(queue_.has_work());
  add({10});
  EXPECT_EQ(next_id(), 0U) << "no closure starts before resume()";
  (void)finish(running, Code::internal);
  EXPECT_TRUE(answers().empty());
  EXPECT_TRUE(queue_.take_revoked().empty());
  EXPECT_TRUE(queue_.take_announcements().empty());
  EXPECT_TRUE(queue_.take_freed().empty());
  queue_.resume();
  EXPECT_FALSE(queue_.outdated());
  EXPECT_EQ(next_id(), 10U);
}

TEST_F(TaskQueueTest, KeepsAnnouncementsAndFreedObjectsOfRevokedClosures) {
  const protocol::Announcement announcement{{}, {{.id = 4, .function = 2, .arguments = {}}}};
  add({1}, 0, &announcement);
  queue_.free_objects(Ids{4, 5});
  (void)queue_.revoke({.max_count = 1});
  queue_.drop_queued();
  const auto announced = queue_.take_announcements();
  ASSERT_EQ(announced.size(), 1U);
  EXPECT_EQ(announced[0].resources.at(0).id, 4U);
  EXPECT_EQ(queue_.take_freed(), (Ids{4, 5}));
  EXPECT_TRUE(queue_.take_revoked().empty()) << "their coordinator is dead";
}

}  // namespace
}  // namespace capstan::coordinator
