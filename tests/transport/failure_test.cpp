// failure_test.cpp -- the end of a rank is reported once and by name, without effect on other ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/error.hpp"
#include "transport/networks.hpp"

namespace capstan::transport {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

class FailureTest : public NetworkTest {
 protected:
  void SetUp() override {
    survivor_ = open(0);
    victim_ = open(1);
    healthy_ = open(2);
    to_victim_ = &connect(*survivor_, *victim_, "ps 0 (rank 1 on node7)");
    to_healthy_ = &connect(*survivor_, *healthy_, "ps 1 (rank 2 on node8)");
    survivor_->on_failure([this](Peer& peer) { reported_.push_back(peer.name()); });
    for (Fabric* f : {victim_.get(), healthy_.get()})
      f->on_message(1, [this](const Message&) { ++received_; });
    to_victim_->send(1, {});
    to_healthy_->send(1, {});
    const Progressing victim(*victim_);
    const Progressing healthy(*healthy_);
    ASSERT_TRUE(progress_until(*survivor_, deadline_in(kTimeout), [&] { return received_ == 2; }));
  }
  void TearDown() override {
    for (auto* fabric : {&survivor_, &victim_, &healthy_}) fabric->reset();
    NetworkTest::TearDown();
  }
  bool wait_for_report() {
    return progress_until(*survivor_, deadline_in(kTimeout), [&] { return !reported_.empty(); });
  }

  std::shared_ptr<Fabric> survivor_;
  std::shared_ptr<Fabric> victim_;
  std::shared_ptr<Fabric> healthy_;
  Peer* to_victim_ = nullptr;
  Peer* to_healthy_ = nullptr;
  std::vector<std::string> reported_;
  std::atomic<int> received_{0};
};

void expect_unavailable(const std::function<void()>& call, const std::string& name) {
  try {
    call();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unavailable);
    EXPECT_THAT(error.what(), HasSubstr(name));
  }
}

TEST_P(FailureTest, KeepsAFailureUntilAHandlerIsRegistered) {
  survivor_->on_failure({});
  survivor_->keep_unhandled(true);
  end(victim_);
  ASSERT_TRUE(progress_until(*survivor_, deadline_in(kTimeout), [&] { return to_victim_->failed(); }));
  survivor_->progress();
  survivor_->on_failure([this](Peer& peer) { reported_.push_back(peer.name()); });
  survivor_->progress();
  survivor_->progress();
  EXPECT_THAT(reported_, testing::ElementsAre(to_victim_->name()));
}

TEST_P(FailureTest, ReportsADeadRankOnceAndByName) {
  EXPECT_FALSE(to_victim_->failed());
  EXPECT_NO_THROW(to_victim_->require_alive());
  end(victim_);
  ASSERT_TRUE(wait_for_report());
  progress_until(*survivor_, deadline_in(milliseconds(100)), [] { return false; });
  EXPECT_EQ(reported_, std::vector<std::string>{"ps 0 (rank 1 on node7)"});
  EXPECT_TRUE(to_victim_->failed());
  expect_unavailable([&] { to_victim_->require_alive(); }, "ps 0 (rank 1 on node7)");
}

TEST_P(FailureTest, DropsOnlyMessagesToADeadRank) {
  end(victim_);
  ASSERT_TRUE(wait_for_report());
  to_victim_->send(1, {}, pattern(100000, 1));
  EXPECT_FALSE(to_healthy_->failed());
  to_healthy_->send(1, {});
  const Progressing healthy(*healthy_);
  EXPECT_TRUE(progress_until(*survivor_, deadline_in(kTimeout), [&] { return received_ == 3; }));
  EXPECT_EQ(reported_.size(), 1U);
}

TEST_P(FailureTest, SendDetectsTheDeathOfItsTarget) {
  end(victim_);
  const auto deadline = deadline_in(kTimeout);
  while (!to_victim_->failed() && std::chrono::steady_clock::now() < deadline) {
    to_victim_->send(1, {}, pattern(1000, 1));
    survivor_->progress();
  }
  ASSERT_TRUE(wait_for_report());
  EXPECT_EQ(reported_.size(), 1U);
}

// A ps that was stopped finds two events when it resumes: a push, and the death of the replica to which it
// forwards the push.
TEST_P(FailureTest, HandlerMaySendToARankThatDiedSinceTheLastPoll) {
  Peer& to_survivor = connect(*healthy_, *survivor_, "survivor");
  int received = 0;
  survivor_->on_message(2, [&](const Message&) {
    ++received;
    to_victim_->send(1, {});
  });
  to_survivor.send(2, {});
  ASSERT_TRUE(spin_until(*survivor_, [&] { return healthy_->progress(), received == 1; }));
  to_survivor.send(2, {});
  while (healthy_->progress() != 0) {
  }
  end(victim_);
  ASSERT_TRUE(spin_until(*survivor_, [&] { return received == 2 && !reported_.empty(); }));
  EXPECT_EQ(reported_, std::vector<std::string>{"ps 0 (rank 1 on node7)"});
}

TEST_P(FailureTest, DeliversEarlierMessagesBeforeTheFailure) {
  for (int round = 0; round < (is_ucx() ? 5 : 500); ++round) {
    auto sender = open_alone(9);
    const auto listener = open(8);
    Peer& to_sender = connect(*listener, *sender, "sender");
    Peer& to_listener = connect(*sender, *listener, "listener");
    int received = 0;
    int received_before_failure = -1;
    listener->on_message(1, [&](const Message&) { ++received; });
    listener->on_failure([&](Peer&) { received_before_failure = received; });
    std::atomic<bool> connected{false};
    // Each rank receives a message of the other before one ends.
    listener->on_message(3, [&](const Message&) { to_sender.send(2, {}); });
    sender->on_message(2, [&](const Message&) { connected = true; });
    to_listener.send(3, {});
    std::jthread owner([&] {
      progress_until(*sender, deadline_in(kTimeout), [&] { return connected.load(); });
      to_listener.send(1, {});
      to_listener.send(1, {});
      sender.reset();
    });
    ASSERT_TRUE(
        progress_until(*listener, deadline_in(kTimeout), [&] { return received_before_failure >= 0; }));
    ASSERT_EQ(received_before_failure, 2) << "round " << round;
  }
}

TEST_P(FailureTest, FailureHandlerMayConnectToAnotherRank) {
  const auto another = open(3);
  bool reached = false;
  another->on_message(1, [&](const Message&) { reached = true; });
  survivor_->on_failure([&](Peer&) { connect(*survivor_, *another, "another").send(1, {}); });
  end(victim_);
  const auto deadline = deadline_in(kTimeout);
  while (!reached && std::chrono::steady_clock::now() < deadline) {
    survivor_->progress();
    another->progress();
  }
  EXPECT_TRUE(reached);
}

TEST_P(FailureTest, RejectsAccessToMemoryOfADeadRank) {
  const auto region = victim_->allocate(4096);
  const auto key = region->key();
  const auto window = to_victim_->open_window(key, WindowPath::rma);
  if (!is_ucx())
    GTEST_SKIP() << "a loop window accesses the memory directly, even after the death of its owner";
  {
    const Progressing victim(*victim_);
    window->put(0, pattern(64, 1));
    window->flush(deadline_in(kTimeout));
  }
  end(victim_);
  ASSERT_TRUE(wait_for_report());
  std::vector<std::byte> out(64);
  expect_unavailable([&] { window->get(0, out, deadline_in(kTimeout)); }, "ps 0");
  expect_unavailable([&] { window->put(0, out); }, "ps 0");
  expect_unavailable([&] { window->flush(deadline_in(kTimeout)); }, "ps 0");
  expect_unavailable([&] { (void)to_victim_->open_window(key, WindowPath::rma); }, "ps 0");
}

TEST_P(FailureTest, GetFromAHungRankFailsAtItsDeadline) {
  if (!is_ucx()) GTEST_SKIP() << "a loop window does not depend on its owner";
  const auto region = victim_->allocate(4096);
  const auto window = to_victim_->open_window(region->key(), WindowPath::rma);
  std::vector<std::byte> out(1024);
  const auto start = std::chrono::steady_clock::now();
  try {
    window->get(0, out, deadline_in(milliseconds(200)));
    FAIL() << "a get was answered by a rank that does not progress";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::deadline_exceeded);
    EXPECT_STREQ(error.what(), "no answer from ps 0 (rank 1 on node7) to a get");
  }
  EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(199));
  // The rank is abandoned, and reported like a dead one.
  EXPECT_TRUE(to_victim_->failed());
  ASSERT_TRUE(wait_for_report());
  EXPECT_EQ(reported_.size(), 1U);
  expect_unavailable([&] { window->get(0, out, deadline_in(kTimeout)); }, "ps 0");
  EXPECT_EQ(to_victim_->transports(), "unknown");
  to_healthy_->send(1, {});
  const Progressing healthy(*healthy_);
  EXPECT_TRUE(progress_until(*survivor_, deadline_in(kTimeout), [&] { return received_ == 3; }));
}

TEST_P(FailureTest, ReportsNothingToAnEndedSubscription) {
  {
    Subscriptions subscriptions(*survivor_);
    subscriptions.on_failure([this](Peer& peer) { reported_.push_back("the owner: " + peer.name()); });
  }
  end(victim_);
  EXPECT_TRUE(progress_until(*survivor_, deadline_in(kTimeout), [&] { return to_victim_->failed(); }));
  EXPECT_TRUE(reported_.empty());
}

TEST_P(FailureTest, ReportsNothingAfterHandlersAreRemoved) {
  survivor_->remove_handlers();
  end(victim_);
  EXPECT_TRUE(progress_until(*survivor_, deadline_in(kTimeout), [&] { return to_victim_->failed(); }));
  progress_until(*survivor_, deadline_in(milliseconds(100)), [] { return false; });
  EXPECT_TRUE(reported_.empty());
}

CAPSTAN_ON_BOTH_NETWORKS(FailureTest);

}  // namespace
}  // namespace capstan::transport
