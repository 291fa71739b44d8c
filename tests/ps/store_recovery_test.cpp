// store_recovery_test.cpp -- values, slots and steps that a restarted ps recovers, and state that it cannot
// recover.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capstan/error.hpp"
#include "gpu/gpu_to_test.hpp"
#include "ps/push_entry.hpp"
#include "ps/shard/store.hpp"
#include "ps/two_stores.hpp"
#include "support/expect_error.hpp"
#include "transport/ucx/fabric.hpp"

namespace capstan::ps {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

/// A process of a ps, and its persistent memory.
class StoreProcess {
 public:
  static constexpr std::uint64_t kRankCount = 3;

  explicit StoreProcess(const std::shared_ptr<transport::PersistentMemory>& memory)
      : persistent_(memory, fabric_, kRankCount, 1 << 16),
        board_(persistent_.board(protocol::BoardLayout(kRankCount).bytes())),
        store_(
            fabric_, 1 << 20, 0, [](std::uint32_t, std::uint64_t) {}, [](std::uint32_t, std::uint64_t) {},
            &persistent_) {
    store_.device()->configure([] { return 0; }, false);
  }

  Store& store() { return store_; }
  PersistentState& persistent() { return persistent_; }
  /// Applies an entry of a rank. `commit`: false: the process is killed before it commits the entry.
  void push(const std::vector<std::byte>& entry, bool commit = true, std::uint32_t rank = 1,
            std::uint64_t closure = 0, std::uint32_t call = 0, bool again = false) {
    std::vector<std::byte> bytes = entry;
    protocol::PushHeader header;
    std::memcpy(&header, bytes.data(), sizeof header);
    header.rank = rank;
    header.closure = closure;
    header.call = call;
    header.again = again ? 1 : 0;
    std::memcpy(bytes.data(), &header, sizeof header);
    apply_entry(store_, bytes);
    if (commit) persistent_.set_applied(rank, persistent_.applied(rank) + header.bytes);
  }
  std::vector<double> values(std::uint32_t variable) {
    const Store::RowsView view = store_.view(variable, 0);
    std::vector<double> out(view.rows * view.row_bytes / sizeof(double));
    std::memcpy(out.data(), view.values, out.size() * sizeof(double));
    return out;
  }

 private:
  transport::UcxFabric fabric_;
  PersistentState persistent_;
  std::unique_ptr<transport::Region> board_;
  Store store_;
};

class StoreRecoveryTest : public testing::Test {
 protected:
  static std::vector<std::byte> dense_push(std::uint32_t variable, double gradient, std::size_t rows = 4) {
    return push_entry<double>(variable, 0, {}, 0, 1, std::vector<double>(rows, gradient));
  }
  void create(std::uint32_t variable, const Optimizer& optimizer = optimizers::SGD{1},
              std::uint64_t rows = 4) {
    process_->store().create(one_shard<double>(variable, {rows}, optimizer, initializers::constant(10)));
  }
  /// Kills the process and starts the next one.
  void restart() {
    process_.emplace(memory_);
    process_->store().recover();
  }

  std::shared_ptr<transport::PersistentMemory> memory_ = transport::PersistentMemory::create();
  std::optional<StoreProcess> process_{std::in_place, memory_};
};

TEST_F(StoreRecoveryTest, FindsNothingInUnusedMemory) {
  process_->store().recover();
  EXPECT_THAT(process_->store().list(), SizeIs(0));
}

TEST_F(StoreRecoveryTest, FindsEveryShardAtItsLocation) {
  create(1);
  create(2, optimizers::SGD{1}, 300000);  // in a region of its own
  process_->push(dense_push(1, 3));
  const auto before = process_->store().list();
  for (int i = 0; i < 2; ++i) {
    restart();
    const auto after = process_->store().list();
    ASSERT_THAT(after, SizeIs(2));
    for (std::size_t s = 0; s < 2; ++s) {
      const auto& [description, location] = after[s];
      const auto& [expected_description, expected_location] = before[s];
      EXPECT_EQ(description.variable, expected_description.variable);
      EXPECT_EQ(description.name, expected_description.name);
      EXPECT_EQ(location.region, expected_location.region);
      EXPECT_EQ(location.offset, expected_location.offset);
    }
    EXPECT_THAT(process_->values(1), ElementsAre(7, 7, 7, 7));
    EXPECT_THAT(process_->values(2), Each(10));
  }
}

TEST_F(StoreRecoveryTest, DoesNotAllocateTheMemoryOfRecoveredShardsAgain) {
  create(1);
  restart();
  create(2);
  process_->push(dense_push(2, 1));
  EXPECT_THAT(process_->values(1), Each(10));
  EXPECT_THAT(process_->values(2), Each(9));
}

TEST_F(StoreRecoveryTest, RecoversStepsAndSlotsOfTheOptimizer) {
  StoreProcess uninterrupted(transport::PersistentMemory::create());
  const Optimizer adam = optimizers::Adam{.learning_rate = 0.5};
  uninterrupted.store().create(one_shard<double>(1, {4}, adam, initializers::constant(10)));
  create(1, adam);
  for (int step = 1; step <= 4; ++step) {
    uninterrupted.push(dense_push(1, step));
    process_->push(dense_push(1, step));
    restart();
  }
  EXPECT_EQ(process_->values(1), uninterrupted.values(1));
}

TEST_F(StoreRecoveryTest, DoesNotRecoverDroppedVariables) {
  create(1);
  create(2);
  process_->store().drop(1);
  restart();
  EXPECT_THAT(process_->store().list(), SizeIs(1));
  (void)error_of(Code::not_found, [&] { process_->store().view(1, 0); });
  EXPECT_THAT(process_->values(2), Each(10));
}

TEST_F(StoreRecoveryTest, UndoesAnUncommittedEntryWithItsStepAndSlots) {
  StoreProcess uninterrupted(transport::PersistentMemory::create());
  const Optimizer adam = optimizers::Adam{.learning_rate = 0.5};
  uninterrupted.store().create(one_shard<double>(1, {4}, adam, initializers::constant(10)));
  create(1, adam);
  uninterrupted.push(dense_push(1, 1));
  process_->push(dense_push(1, 1));
  const auto before = process_->values(1);
  process_->push(dense_push(1, 5), false);
  EXPECT_NE(process_->values(1), before);
  restart();
  EXPECT_EQ(process_->values(1), before);
  // The pusher sends it again.
  uninterrupted.push(dense_push(1, 5));
  process_->push(dense_push(1, 5));
  EXPECT_EQ(process_->values(1), uninterrupted.values(1));
}

TEST_F(StoreRecoveryTest, UndoesOnlyRowsThatTheEntryChanged) {
  create(1);
  create(2);
  process_->push(push_entry<double>(1, 0, {3, 1}, 0, 1, std::vector<double>{1, 2}));
  process_->push(push_entry<double>(2, 0, {0, 1}, 0, 1, std::vector<double>{1, 2}), false, 2);
  restart();
  EXPECT_THAT(process_->values(1), ElementsAre(10, 8, 10, 9));
  EXPECT_THAT(process_->values(2), Each(10));
}

TEST_F(StoreRecoveryTest, IgnoresAnUncommittedEntryOfADroppedVariable) {
  create(1);
  create(2);
  process_->push(dense_push(1, 5), false);
  process_->store().drop(1);
  restart();
  EXPECT_THAT(process_->values(2), Each(10));
  EXPECT_FALSE(process_->persistent().uncommitted_entry().has_value());
}

TEST_F(StoreRecoveryTest, AcceptsAnUndoneEntryThatItsPusherSendsAgain) {
  constexpr std::uint64_t kClosure = 7;
  create(1);
  process_->push(dense_push(1, 1), true, 1, kClosure, 0);
  process_->push(dense_push(1, 2), false, 1, kClosure, 1);
  restart();
  EXPECT_THAT(process_->values(1), Each(9));
  process_->push(dense_push(1, 2), true, 1, kClosure, 1);
  EXPECT_THAT(process_->values(1), Each(7));
}

TEST_F(StoreRecoveryTest, AppliesNoPushOfADeadWorkersClosureTwice) {
  constexpr std::uint64_t kClosure = 7;
  create(1);
  process_->push(dense_push(1, 1), true, 1, kClosure, 0);
  process_->persistent().append_words(PersistentState::Record::dead, {1});
  restart();
  process_->push(dense_push(1, 1), true, 2, kClosure, 0, true);
  EXPECT_THAT(process_->values(1), Each(9));
  process_->push(dense_push(1, 2), true, 2, kClosure, 1, true);
  EXPECT_THAT(process_->values(1), Each(7));
}

TEST_F(StoreRecoveryTest, KeepsAShardInconsistentUntilItsUnfinishedPushIsAbandoned) {
  create(1);
  create(2);
  process_->push(push_entry<double>(1, 0, {}, 0, 1, std::vector<double>(4, 1), true, false));
  restart();
  EXPECT_FALSE(process_->store().is_consistent(1, 0));
  EXPECT_TRUE(process_->store().is_consistent(2, 0));
  process_->store().abandon(1, 0);
  EXPECT_TRUE(process_->store().is_consistent(1, 0));
}

TEST_F(StoreRecoveryTest, RejectsRecoveryOfAnUpdateGroup) {
  create(1);
  protocol::CreateGroup group;
  group.id = 1;
  process_->store().create_group(group);
  process_.emplace(memory_);
  (void)error_of(Code::unavailable, [&] { process_->store().recover(); });
}

TEST_F(StoreRecoveryTest, AppliesAStepOfAGroupThatIsLargerThanTheJournal) {
  constexpr std::uint64_t kRows = 400'000;
  constexpr std::uint64_t kRowsOfEntry = 4000;
  protocol::CreateGroup group;
  group.id = 1;
  group.mode = protocol::GroupMode::synchronous;
  group.workers = {1};
  process_->store().create_group(group);
  protocol::CreateShard shard = one_shard<double>(1, {kRows}, optimizers::SGD{1}, initializers::constant(10));
  shard.group = 1;
  process_->store().create(shard);
  for (std::uint64_t first = 0; first < kRows; first += kRowsOfEntry) {
    process_->push(push_entry<double>(1, 0, {}, first, 1, std::vector<double>(kRowsOfEntry, 2), first == 0,
                                      first + kRowsOfEntry == kRows));
  }
  EXPECT_THAT(process_->values(1), Each(10));
  protocol::PushHeader end;
  end.kind = protocol::PushKind::step;
  end.variable = 1;
  end.rank = 1;
  end.first_row = 1;
  end.bytes = sizeof end;
  process_->store().apply(end, {}, nullptr);
  EXPECT_THAT(process_->values(1), Each(8));
}

class StoreRecoveryOnGpuTest : public gpu::OnGpu {};

TEST_F(StoreRecoveryOnGpuTest, RejectsRecoveryOfAShardInGpuMemory) {
  const auto memory = transport::PersistentMemory::create();
  std::optional<StoreProcess> process(std::in_place, memory);
  auto request = one_shard<double>(1, {4}, optimizers::SGD{1});
  request.memory = ShardMemory::device;
  process->store().create(request);
  process.emplace(memory);
  EXPECT_THAT(error_of(Code::unavailable, [&] { process->store().recover(); }), HasSubstr("\"v1\""));
}

}  // namespace
}  // namespace capstan::ps
