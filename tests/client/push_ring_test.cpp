// push_ring_test.cpp -- a ring and a board, written through windows as a pusher does.
#include "client/channel/push_ring.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "client/channel/ps_board.hpp"
#include "transport/loop/loop.hpp"

namespace capstan::client {
namespace {

constexpr std::uint64_t kRanks = 3;
constexpr int kRank = 1;  // rank of the pusher
constexpr std::uint64_t kRingOffset = 128;
constexpr std::uint64_t kRingBytes = 1024;

class PushRingTest : public testing::TestWithParam<transport::WindowPath> {
 protected:
  void SetUp() override { ring_.open({0, kRingOffset, kRingBytes}, *window_); }

  /// Simulates the ps: reads the entries published since the last call, and stores their end as applied.
  /// Returns the numbers of the entries, as passed to write().
  std::vector<std::uint32_t> apply() {
    const std::uint64_t tail = word(layout_.tail(kRank)).load();
    std::vector<std::uint32_t> numbers;
    while (applied_ < tail) {
      protocol::PushHeader header;
      std::memcpy(&header, ring_region_->memory().data() + kRingOffset + applied_ % kRingBytes,
                  sizeof header);
      EXPECT_LE(applied_ % kRingBytes + header.bytes, kRingBytes) << "an entry wraps around";
      if (header.kind != protocol::PushKind::padding) numbers.push_back(header.variable);
      applied_ += header.bytes;
    }
    word(layout_.applied(kRank)).store(applied_);
    return numbers;
  }
  /// Writes an entry of `bytes` bytes with a number. REQUIRES: it fits.
  void write(std::uint32_t number, std::uint64_t bytes) {
    if (ring_.to_end() < bytes) ring_.pad();
    std::vector<std::byte> entry(bytes);
    protocol::PushHeader header;
    header.kind = protocol::PushKind::dense;
    header.variable = number;
    header.bytes = bytes;
    std::memcpy(entry.data(), &header, sizeof header);
    if (std::byte* const mapped = ring_.mapped(); mapped != nullptr) {
      std::memcpy(mapped, entry.data(), bytes);
    } else {
      ring_.put(0, entry);
    }
    ring_.advance(bytes);
  }
  void publish() {
    board_.publish(ring_.tail());
    ring_.note_published();
  }
  std::atomic_ref<std::uint64_t> word(std::uint64_t offset) {
    return transport::word_at(board_region_->memory().data() + offset);
  }

  protocol::BoardLayout layout_{kRanks};
  transport::LoopHub hub_;
  std::unique_ptr<transport::Fabric> ps_ = hub_.open();
  std::unique_ptr<transport::Fabric> client_ = hub_.open();
  transport::Peer* peer_ = &client_->connect(0, "ps 0", ps_->address());
  std::unique_ptr<transport::Region> board_region_ = ps_->allocate(layout_.bytes());
  std::unique_ptr<transport::Region> ring_region_ = ps_->allocate(kRingOffset + kRingBytes);
  std::unique_ptr<transport::Window> window_ = peer_->open_window(ring_region_->key(), GetParam());
  PsBoard board_{peer_->open_window(board_region_->key(), GetParam()), layout_, kRank,
                 std::chrono::seconds(20)};
  PushRing ring_{kRingBytes, 0};
  std::uint64_t applied_ = 0;  // bytes applied by apply()
};

TEST_P(PushRingTest, HidesEntriesUntilTheyArePublished) {
  write(1, 64);
  write(2, 128);
  EXPECT_FALSE(ring_.published());
  EXPECT_TRUE(apply().empty());
  publish();
  EXPECT_TRUE(ring_.published());
  EXPECT_EQ(apply(), (std::vector<std::uint32_t>{1, 2}));
}

TEST_P(PushRingTest, IsFullUntilTheBoardReportsAppliedEntries) {
  EXPECT_EQ(ring_.applied(), ring_.tail());
  EXPECT_TRUE(ring_.fits(kRingBytes));
  for (std::uint32_t number = 0; number < 4; ++number) write(number, 256);
  EXPECT_FALSE(ring_.fits(64));
  publish();
  EXPECT_EQ(board_.applied(), 0U);
  EXPECT_EQ(apply().size(), 4U);
  EXPECT_FALSE(ring_.fits(64)) << "the board has not been read";
  ring_.note_applied(board_.applied());
  EXPECT_TRUE(ring_.fits(kRingBytes));
  EXPECT_EQ(ring_.applied(), ring_.tail());
}

TEST_P(PushRingTest, PadsToTheEndInsteadOfWrapping) {
  std::mt19937 random(3);
  std::vector<std::uint32_t> sent;
  std::vector<std::uint32_t> found;
  for (std::uint32_t number = 1; number <= 1000; ++number) {
    const std::uint64_t bytes = (1 + random() % 4) * protocol::kCacheLine;
    if (!ring_.fits(bytes + ring_.to_end())) {
      publish();
      const auto applied = apply();
      found.insert(found.end(), applied.begin(), applied.end());
      ring_.note_applied(board_.applied());
    }
    write(number, bytes);
    sent.push_back(number);
  }
  publish();
  const auto applied = apply();
  found.insert(found.end(), applied.begin(), applied.end());
  EXPECT_EQ(found, sent);
  EXPECT_GT(ring_.tail(), 100 * kRingBytes);
}

TEST_P(PushRingTest, ContinuesAtTheAppliedPosition) {
  write(1, 64);
  publish();
  apply();
  ring_ = PushRing(kRingBytes, board_.applied());
  ring_.open({0, kRingOffset, kRingBytes}, *window_);
  EXPECT_EQ(ring_.applied(), ring_.tail());
  EXPECT_TRUE(ring_.published());
  write(2, 64);
  publish();
  EXPECT_EQ(apply(), std::vector<std::uint32_t>{2});
}

TEST_P(PushRingTest, BoardProvidesStepsCountersAndTheFence) {
  word(layout_.group(2)).store(9);
  word(layout_.counter(5)).store(40);
  EXPECT_EQ(board_.steps(2), 9U);
  if (board_.mapped()) {  // else the ps adds
    EXPECT_EQ(board_.fetch_add(5, 2), 40U);
    EXPECT_EQ(word(layout_.counter(5)).load(), 42U);
  }
  word(layout_.applied(kRank)).store(protocol::kFenced);
  EXPECT_EQ(board_.applied(), protocol::kFenced);
}

TEST_P(PushRingTest, SleepingPsIsSignaledOnce) {
  EXPECT_EQ(board_.mapped(), GetParam() == transport::WindowPath::mapped);
  if (!board_.mapped()) return;
  EXPECT_FALSE(board_.exchange_asleep());
  word(layout_.asleep()).store(1);
  EXPECT_TRUE(board_.exchange_asleep());
  EXPECT_FALSE(board_.exchange_asleep());
}

std::string window_name(const testing::TestParamInfo<transport::WindowPath>& path) {
  return path.param == transport::WindowPath::mapped ? "mapped" : "rma";
}

INSTANTIATE_TEST_SUITE_P(Windows, PushRingTest,
                         testing::Values(transport::WindowPath::mapped, transport::WindowPath::rma),
                         window_name);

}  // namespace
}  // namespace capstan::client
