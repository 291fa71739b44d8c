// ring_reader_test.cpp -- tests that exactly the published entries are applied, in order.
#include "ps/ingest/ring_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <random>

#include "base/log.hpp"
#include "ps/push_entry.hpp"
#include "transport/loop/loop.hpp"

namespace capstan::ps {
namespace {

using testing::HasSubstr;

/// Records its calls.
class RingRecorder : public protocol::PushSink {
 public:
  struct Push {
    protocol::PushKind kind;
    std::uint32_t variable;
    std::vector<std::uint32_t> rows;
    std::vector<float> values;
  };
  void apply(const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
             const std::byte* values) override {
    Push push{header.kind, header.variable, {rows.begin(), rows.end()}, std::vector<float>(header.rows)};
    std::memcpy(push.values.data(), values, push.values.size() * sizeof(float));
    pushes.push_back(std::move(push));
    calls.push_back("apply");
  }
  bool ready(const protocol::PushHeader& header) override { return !held || header.first_part == 0; }
  void abandon(std::uint32_t variable, std::uint32_t) override {
    abandoned.push_back(variable);
    calls.push_back("abandon");
  }
  bool unsettled() const noexcept override { return on_settle && settled < pushes.size(); }
  void settle() override {
    if (!unsettled()) return;
    settled = pushes.size();
    on_settle();
  }
  std::vector<Push> pushes;
  std::function<void()> on_settle;  // empty: entries are applied synchronously
  std::size_t settled = 0;          // number of `pushes` that are settled
  bool held = false;
  std::vector<std::uint32_t> abandoned;  // variables
  std::vector<std::string> calls;        // of apply and abandon
};

class RingReaderTest : public testing::Test {
 protected:
  void SetUp() override { log::set_rank_tag("ps 3@here"); }  // log to standard error

  static constexpr std::uint64_t kRanks = 4;
  static constexpr std::uint64_t kRing = 4096;

  /// The pusher's end of a ring: like RingPushChannel, but it never waits.
  struct Pusher {
    int rank;
    protocol::RingLocation location;
    std::byte* ring;
    std::byte* board;
    std::uint64_t tail = 0;

    std::atomic_ref<std::uint64_t> word(std::uint64_t offset) const {
      return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(board + offset));
    }
    std::uint64_t applied() const {
      return word(protocol::BoardLayout(kRanks).applied(static_cast<std::uint64_t>(rank))).load();
    }
    bool has_room(std::uint64_t bytes) const { return tail + bytes - applied() <= location.bytes; }
    /// Writes without publishing.
    void write(const std::vector<std::byte>& entry) {
      const std::uint64_t to_end = location.bytes - tail % location.bytes;
      if (to_end < entry.size()) {
        protocol::PushHeader padding;
        padding.bytes = to_end;
        std::memcpy(ring + tail % location.bytes, &padding, sizeof padding);
        tail += to_end;
      }
      std::memcpy(ring + tail % location.bytes, entry.data(), entry.size());
      tail += entry.size();
    }
    void publish() const {
      word(protocol::BoardLayout(kRanks).tail(static_cast<std::uint64_t>(rank))).store(tail);
    }
  };

  Pusher open(int rank, std::uint64_t bytes = kRing) {
    const protocol::RingLocation location = reader_.open(rank, bytes);
    auto& window = windows_.emplace_back(peer_->open_window(heap_.key(location.region), {}));
    return {rank, location, window->mapped() + location.offset, board_.data()};
  }
  static std::vector<std::byte> entry(std::uint32_t number, std::size_t rows = 1, bool dense = false,
                                      bool first_part = true, bool last_part = true) {
    std::vector<std::uint32_t> numbers;
    for (std::uint32_t i = 0; i < rows && !dense; ++i) numbers.push_back(i * 3);
    return push_entry<float>(number, 0, numbers, 0, 1, std::vector<float>(rows, static_cast<float>(number)),
                             first_part, last_part);
  }
  std::vector<std::uint32_t> numbers() const {
    std::vector<std::uint32_t> out;
    for (const auto& push : sink_.pushes) out.push_back(push.variable);
    return out;
  }
  void expect_complete(const RingRecorder::Push& push) const {
    for (std::uint32_t i = 0; i < push.rows.size(); ++i) EXPECT_EQ(push.rows[i], i * 3);
    for (const float value : push.values) EXPECT_EQ(value, static_cast<float>(push.variable));
  }

  transport::LoopHub hub_;
  std::unique_ptr<transport::Fabric> fabric_ = hub_.open();
  std::unique_ptr<transport::Fabric> client_ = hub_.open();
  transport::Peer* peer_ = &client_->connect(0, "ps", fabric_->address());
  std::unique_ptr<transport::Region> region_ = fabric_->allocate(protocol::BoardLayout(kRanks).bytes());
  std::span<std::byte> board_ = region_->memory();
  Heap heap_{*fabric_, 1 << 20};
  RingRecorder sink_;
  RingReader reader_{board_.data(), kRanks, heap_, sink_};
  std::vector<std::unique_ptr<transport::Window>> windows_;
};

TEST_F(RingReaderTest, AppliesPublishedEntriesInOrder) {
  Pusher pusher = open(1);
  EXPECT_FALSE(reader_.has_work());
  EXPECT_FALSE(reader_.apply_some());
  pusher.write(entry(1));
  pusher.write(entry(2, 20));
  pusher.write(entry(3, 5, true));
  pusher.publish();
  EXPECT_TRUE(reader_.has_work());
  EXPECT_TRUE(reader_.apply_some());
  EXPECT_EQ(numbers(), (std::vector<std::uint32_t>{1, 2, 3}));
  for (const auto& push : sink_.pushes) expect_complete(push);
  EXPECT_EQ(sink_.pushes[1].rows.size(), 20U);
  EXPECT_EQ(sink_.pushes[2].kind, protocol::PushKind::dense);
  EXPECT_EQ(pusher.applied(), pusher.tail);
  EXPECT_FALSE(reader_.has_work());
  EXPECT_FALSE(reader_.apply_some());
}

TEST_F(RingReaderTest, PublishesThePositionOncePerTurnAfterSettling) {
  Pusher pusher = open(1);
  std::vector<std::uint64_t> applied;
  sink_.on_settle = [&] { applied.push_back(pusher.applied()); };
  for (std::uint32_t number = 1; number <= 20; ++number) pusher.write(entry(number));
  pusher.publish();
  const std::uint64_t bytes = entry(1).size();
  EXPECT_TRUE(reader_.apply_some());
  EXPECT_EQ(pusher.applied(), 16 * bytes);
  EXPECT_TRUE(reader_.apply_some());
  EXPECT_EQ(pusher.applied(), 20 * bytes);
  EXPECT_EQ(applied, (std::vector<std::uint64_t>{0, 16 * bytes})) << "the position before each wait";
  EXPECT_EQ(sink_.settled, 20U);
}

TEST_F(RingReaderTest, IgnoresUnpublishedEntries) {
  Pusher pusher = open(1);
  pusher.write(entry(1));
  EXPECT_FALSE(reader_.apply_some());
  pusher.publish();
  pusher.write(entry(2));  // complete, but its pusher died before publishing it
  EXPECT_TRUE(reader_.apply_some());
  EXPECT_FALSE(reader_.apply_some());
  EXPECT_EQ(numbers(), std::vector<std::uint32_t>{1});
}

TEST_F(RingReaderTest, WaitingReadAllowsOnlyTheUnfinishedPush) {
  Pusher one = open(1);
  Pusher two = open(2);
  one.write(entry(1, 1, false, true, false));
  one.publish();
  EXPECT_TRUE(reader_.apply_some());
  sink_.held = true;
  one.write(entry(2, 1, false, false, true));
  one.write(entry(3));
  one.publish();
  two.write(entry(4));
  two.publish();
  EXPECT_TRUE(reader_.apply_some());
  EXPECT_FALSE(reader_.apply_some());
  EXPECT_EQ(numbers(), (std::vector<std::uint32_t>{1, 2}));
  EXPECT_TRUE(reader_.has_work());
  sink_.held = false;
  EXPECT_TRUE(reader_.apply_some());
  EXPECT_EQ(numbers(), (std::vector<std::uint32_t>{1, 2, 3, 4}));
}

TEST_F(RingReaderTest, AbandonsAnIncompletePush) {
  Pusher one = open(1);
  one.write(entry(7, 1, false, true, false));
  one.publish();
  EXPECT_TRUE(reader_.apply_some());
  EXPECT_TRUE(sink_.abandoned.empty());
  reader_.close(1);
  EXPECT_EQ(sink_.abandoned, std::vector<std::uint32_t>{7});
  Pusher two = open(2);
  two.write(entry(8, 1, false, true, false));
  two.write(entry(9));  // another push, although 8 was not ended
  two.publish();
  EXPECT_TRUE(reader_.apply_some());
  EXPECT_EQ(sink_.abandoned, (std::vector<std::uint32_t>{7, 8}));
  // 8 is abandoned after 9 is applied: a consistent read between the two would see a part of 8.
  EXPECT_EQ(sink_.calls, (std::vector<std::string>{"apply", "abandon", "apply", "apply", "abandon"}));
  reader_.close(2);
  EXPECT_EQ(sink_.abandoned.size(), 2U);
}

TEST_F(RingReaderTest, WaitingReadDoesNotBlockTheEndOfAnAbandonedPush) {
  Pusher one = open(1);
  one.write(entry(1, 1, false, true, false));
  one.publish();
  EXPECT_TRUE(reader_.apply_some());
  sink_.held = true;
  one.write(entry(2));  // abandons 1
  one.write(entry(3));
  one.publish();
  EXPECT_TRUE(reader_.apply_some());
  EXPECT_EQ(numbers(), (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(sink_.abandoned, std::vector<std::uint32_t>{1});
  EXPECT_FALSE(reader_.apply_some());
}

TEST_F(RingReaderTest, AppliesEntriesOfADeadRankDespiteAWaitingRead) {
  Pusher one = open(1);
  one.write(entry(1));
  one.publish();
  sink_.held = true;
  EXPECT_FALSE(reader_.apply_some());
  reader_.close(1);
  EXPECT_EQ(numbers(), std::vector<std::uint32_t>{1});
}

TEST_F(RingReaderTest, RejectsEntriesOfAFencedRank) {
  Pusher one = open(1);
  one.write(entry(1));
  one.publish();
  one.write(entry(2));
  reader_.close(1);
  EXPECT_EQ(one.applied(), protocol::kFenced);
  one.publish();
  EXPECT_FALSE(reader_.has_work());
  EXPECT_FALSE(reader_.apply_some());
  reader_.close(1);
  EXPECT_EQ(numbers(), std::vector<std::uint32_t>{1});
}

TEST_F(RingReaderTest, RingMemoryMatchesTheFormulaAndIsReused) {
  constexpr std::uint64_t kBytes = 64 * 1024;
  constexpr std::uint64_t kSlab = 1 << 20;  // slab size of heap_
  const auto slabs = [](std::uint64_t bytes) { return (bytes + kSlab - 1) / kSlab * kSlab; };
  EXPECT_EQ(heap_.bytes(), 0U) << "no ring is allocated before a worker pushes";
  for (int rank = 0; rank < static_cast<int>(kRanks); ++rank) {
    open(rank, kBytes);
    EXPECT_EQ(heap_.bytes(), slabs((static_cast<std::uint64_t>(rank) + 1) * kBytes));
  }
  for (int round = 0; round < 100; ++round) {
    for (int rank = 0; rank < static_cast<int>(kRanks); ++rank) {
      reader_.close(rank);
      reader_.release(rank);
    }
    for (int rank = 0; rank < static_cast<int>(kRanks); ++rank) open(rank, kBytes);
  }
  EXPECT_EQ(heap_.bytes(), slabs(kRanks * kBytes));
}

TEST_F(RingReaderTest, ReusesNoRingThatADeadRankMayWrite) {
  constexpr std::uint64_t kBytes = 64 * 1024;
  const auto offset = [&](int rank) { return reader_.open(rank, kBytes).offset; };
  const std::uint64_t first = offset(1);
  reader_.close(1);
  EXPECT_NE(offset(2), first);
  reader_.release(1);
  EXPECT_EQ(offset(3), first);
}

TEST_F(RingReaderTest, IgnoresAnEntryInterruptedByDeath) {
  const auto second = entry(2, 30);
  for (std::size_t written = 0; written <= second.size(); written += 16) {
    sink_.pushes.clear();
    Pusher pusher = open(1);
    pusher.write(entry(1));
    pusher.publish();
    std::memcpy(pusher.ring + pusher.tail, second.data(), written);
    reader_.close(1);
    EXPECT_EQ(numbers(), std::vector<std::uint32_t>{1}) << written << " bytes of the second were written";
    EXPECT_FALSE(reader_.apply_some());
  }
}

TEST_F(RingReaderTest, WrapsWithPadding) {
  Pusher pusher = open(2);
  std::mt19937 random(3);
  std::vector<std::uint32_t> sent;
  for (std::uint32_t number = 1; number <= 2000; ++number) {
    const auto next = entry(number, 1 + random() % 100, number % 5 == 0);
    while (!pusher.has_room(2 * 1024)) ASSERT_TRUE(reader_.apply_some());
    pusher.write(next);
    sent.push_back(number);
    if (random() % 3 == 0) pusher.publish();
    if (random() % 4 == 0) reader_.apply_some();
    if (!pusher.has_room(2 * 1024)) pusher.publish();
  }
  pusher.publish();
  while (reader_.apply_some()) {
  }
  EXPECT_GT(pusher.tail, 100 * kRing);
  EXPECT_EQ(numbers(), sent);
  for (const auto& push : sink_.pushes) expect_complete(push);
  EXPECT_EQ(pusher.applied(), pusher.tail);
}

TEST_F(RingReaderTest, OnePusherDoesNotStarveTheOthers) {
  Pusher busy = open(1);
  Pusher modest = open(2);
  for (std::uint32_t i = 0; i < 20; ++i) busy.write(entry(100 + i));
  busy.publish();
  modest.write(entry(7));
  modest.publish();
  EXPECT_TRUE(reader_.apply_some());
  EXPECT_THAT(numbers(), testing::Contains(7));
  EXPECT_LT(numbers().size(), 21U);
  EXPECT_TRUE(reader_.apply_some());
  EXPECT_EQ(numbers().size(), 21U);
  EXPECT_FALSE(reader_.apply_some());
}

TEST_F(RingReaderTest, OpenReturnsTheExistingRing) {
  const Pusher first = open(1);
  const auto again = reader_.open(1, kRing);
  EXPECT_EQ(again.region, first.location.region);
  EXPECT_EQ(again.offset, first.location.offset);
  const auto other = reader_.open(2, kRing);
  EXPECT_NE(other.offset, first.location.offset);
}

TEST_F(RingReaderTest, CloseAppliesPublishedEntries) {
  Pusher pusher = open(1);
  for (std::uint32_t i = 1; i <= 21; ++i) pusher.write(entry(i));
  pusher.publish();
  pusher.write(entry(22));
  reader_.close(1);
  EXPECT_EQ(numbers().size(), 21U);
  reader_.close(1);
  reader_.close(3);
  EXPECT_FALSE(reader_.has_work());
}

TEST_F(RingReaderTest, ReusesTheRingOfADeadRank) {
  Pusher dead = open(1);
  for (std::uint32_t i = 1; i <= 5; ++i) dead.write(entry(i));
  dead.publish();
  reader_.close(1);
  reader_.release(1);
  const std::uint64_t before = heap_.bytes();
  sink_.pushes.clear();
  Pusher heir = open(3);
  EXPECT_EQ(heir.location.offset, dead.location.offset);
  EXPECT_EQ(heap_.bytes(), before);
  EXPECT_FALSE(reader_.apply_some());  // none of the old pushes
  heir.write(entry(9));
  heir.publish();
  EXPECT_TRUE(reader_.apply_some());
  EXPECT_EQ(numbers(), std::vector<std::uint32_t>{9});
  // The same rank begins at position 0 after a restart, too.
  Pusher back = open(1);
  EXPECT_EQ(back.applied(), 0U);
  EXPECT_FALSE(reader_.apply_some());
  back.write(entry(10));
  back.publish();
  EXPECT_TRUE(reader_.apply_some());
  EXPECT_EQ(numbers(), (std::vector<std::uint32_t>{9, 10}));
}

/// Damages the header of an entry, publishes it, and expects that only this entry is lost.
class RingDamageTest : public RingReaderTest {
 protected:
  template <class Damage>
  void expect_dropped(const Damage& damage) {
    sink_.pushes.clear();
    Pusher pusher = open(1);
    pusher.write(entry(1));
    auto broken = entry(2, 20);
    protocol::PushHeader header;
    std::memcpy(&header, broken.data(), sizeof header);
    damage(header);
    std::memcpy(broken.data(), &header, sizeof header);
    pusher.write(broken);
    pusher.publish();
    testing::internal::CaptureStderr();
    EXPECT_TRUE(reader_.apply_some());
    EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("rank 1"));
    EXPECT_FALSE(reader_.apply_some());
    EXPECT_EQ(pusher.applied(), pusher.tail);
    pusher.write(entry(3));
    pusher.publish();
    EXPECT_TRUE(reader_.apply_some());
    EXPECT_EQ(numbers(), (std::vector<std::uint32_t>{1, 3}));
    reader_.close(1);
  }
};

TEST_F(RingDamageTest, DropsAnEntryOfInvalidSize) {
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{63}, std::uint64_t{65}, std::uint64_t{64},
                                    std::uint64_t{1} << 40, std::uint64_t(-64), kRing}) {
    SCOPED_TRACE(bytes);
    expect_dropped([bytes](protocol::PushHeader& header) { header.bytes = bytes; });
  }
}

TEST_F(RingDamageTest, DropsAnEntryBeyondTheTail) {
  expect_dropped([](protocol::PushHeader& header) { header.bytes += 64; });
}

TEST_F(RingDamageTest, DropsAnEntryWithMoreRowsThanBytes) {
  for (const std::uint32_t rows : {1000U, 0x7fffffffU, 0xffffffffU}) {
    SCOPED_TRACE(rows);
    expect_dropped([rows](protocol::PushHeader& header) { header.rows = rows; });
  }
}

TEST_F(RingDamageTest, SurvivesRandomBytes) {
  std::mt19937 random(11);
  testing::internal::CaptureStderr();
  for (int round = 0; round < 300; ++round) {
    Pusher pusher = open(1);
    for (std::uint64_t i = 0; i < kRing; ++i) pusher.ring[i] = static_cast<std::byte>(random());
    pusher.tail = round % 2 == 0 ? random() % kRing / 64 * 64 : random() % kRing;
    pusher.publish();
    for (int i = 0; i < 100 && reader_.apply_some(); ++i) {
    }
    EXPECT_FALSE(reader_.apply_some());
    reader_.close(1);
  }
  (void)testing::internal::GetCapturedStderr();
}

}  // namespace
}  // namespace capstan::ps
