// host_shard_test.cpp -- tests a shard in host memory without a store.
// Tests: src/ps/shard/frozen_rows.hpp
#include "ps/shard/host_shard.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "capstan/error.hpp"
#include "io/temporary_directory.hpp"
#include "ps/durability/restore_files.hpp"
#include "ps/push_entry.hpp"
#include "support/expect_error.hpp"

namespace capstan::ps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Creates a shard and its memory. A row has two doubles. The shard begins at row `first_row` of a variable
/// of 100 rows.
class HostShardTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kWidth = 2;

  HostShard& make(std::uint64_t rows, const Optimizer& optimizer, const Initializer& initializer = {},
                  std::uint64_t first_row = 0, Journal* journal = nullptr) {
    protocol::CreateShard description{1,         0,    "w",       DType::float64, {100, kWidth},
                                      first_row, rows, optimizer, initializer};
    HostShard::Arrays arrays;
    values_.assign(rows * kWidth, 0);
    arrays.values = reinterpret_cast<std::byte*>(values_.data());
    slots_.assign(protocol::slots_of(optimizer.kind).size(), std::vector<double>(rows * kWidth));
    for (auto& slot : slots_) arrays.slots.push_back(reinterpret_cast<std::byte*>(slot.data()));
    shard_.emplace(description, protocol::ShardLocation{3, first_row, rows, 5, 64, 5, 0},
                   Shard::Words::at(reinterpret_cast<std::byte*>(line_)), std::move(arrays),
                   HostShard::Shared{.journal = journal});
    shard_->initialize();
    return *shard_;
  }

  struct Entry {
    protocol::PushHeader header;
    std::vector<std::uint32_t> rows;
    const std::byte* values;
  };
  static Entry parse(const std::vector<std::byte>& bytes) {
    Entry entry;
    std::memcpy(&entry.header, bytes.data(), sizeof entry.header);
    const bool sparse = entry.header.kind == protocol::PushKind::sparse;
    entry.rows.resize(sparse ? entry.header.rows : 0);
    const std::byte* rest = bytes.data() + sizeof entry.header;
    if (sparse) std::memcpy(entry.rows.data(), rest, entry.rows.size() * sizeof(std::uint32_t));
    entry.values = rest + protocol::number_bytes(entry.header.kind, entry.header.rows);
    return entry;
  }
  bool fits(const std::vector<std::byte>& bytes) const {
    const Entry entry = parse(bytes);
    return shard_->fits(entry.header, entry.rows, entry.values);
  }
  void apply(const std::vector<std::byte>& bytes) {
    const Entry entry = parse(bytes);
    ASSERT_TRUE(shard_->fits(entry.header, entry.rows, entry.values));
    shard_->apply(entry.header, entry.rows, entry.values);
  }
  void push(std::vector<std::uint32_t> rows, const std::vector<double>& gradient, bool first_part = true,
            bool last_part = true) {
    apply(push_entry<double>(1, 0, std::move(rows), 0, kWidth, gradient, first_part, last_part));
  }

  std::vector<double> read(FrozenRows& frozen, std::size_t array = 0) {
    frozen.list_rows();
    std::vector<double> out(frozen.rows() * kWidth);
    frozen.copy(array, 0, frozen.rows(), reinterpret_cast<std::byte*>(out.data()), mutex_);
    return out;
  }
  /// Restores from a file with these numbers.
  void restore(const std::vector<double>& numbers, std::vector<protocol::RestorePiece> pieces,
               std::int64_t steps = 0) {
    const std::vector<std::string> names{"part"};
    std::ofstream(directory_.path() / names[0], std::ios::binary)
        .write(reinterpret_cast<const char*>(numbers.data()),
               static_cast<std::streamsize>(numbers.size() * sizeof(double)));
    RestoreFiles files(directory_.path().string(), names);
    shard_->restore({1, 0, steps, {}, std::move(pieces), {}}, files);
  }
  std::uint64_t version() const { return line_[0]; }

  io::TemporaryDirectory directory_;
  std::mutex mutex_;  // stands in for the mutex of the store
  alignas(64) std::uint64_t line_[8] = {};
  std::vector<double> values_;
  std::vector<std::vector<double>> slots_;
  std::optional<HostShard> shard_;
};

TEST_F(HostShardTest, AppliesSparseAndDensePushesInPlace) {
  make(4, optimizers::SGD{.learning_rate = 1});
  push({3, 0}, {1, 2, 3, 4});
  EXPECT_THAT(values_, ElementsAre(-3, -4, 0, 0, 0, 0, -1, -2));
  apply(push_entry<double>(1, 0, {}, 1, kWidth, {10, 20, 30, 40}));
  EXPECT_THAT(values_, ElementsAre(-3, -4, -10, -20, -30, -40, -1, -2));
  apply(with_op(push_entry<double>(1, 0, {2}, 0, kWidth, {7, 8}), protocol::RowOp::set));
  EXPECT_THAT(values_, ElementsAre(-3, -4, -10, -20, 7, 8, -1, -2));
  EXPECT_EQ(shard_->steps(), 2) << "an assignment is not an optimizer step";
  EXPECT_EQ(shard_->rows_moved(), 5U);
}

TEST_F(HostShardTest, InitializesValuesByRowOfTheVariableAndSlotsByOptimizer) {
  const Initializer normal = initializers::normal(0, 1, 5);
  make(10, {}, normal);
  const std::vector<double> whole = values_;
  make(4, optimizers::Adagrad{.initial_accumulator = 0.5}, normal, 6);
  EXPECT_EQ(values_, std::vector<double>(whole.begin() + 6 * kWidth, whole.end()));
  ASSERT_EQ(slots_.size(), 1U);
  EXPECT_EQ(slots_[0], std::vector<double>(4 * kWidth, 0.5));
}

TEST_F(HostShardTest, GathersRowsInTheOrderGivenAndBytesInPlace) {
  const HostShard& shard = make(4, optimizers::SGD{.learning_rate = -1});
  push({}, {0, 1, 10, 11, 20, 21, 30, 31});
  std::vector<double> rows(6);
  shard.gather(std::vector<std::uint32_t>{2, 0, 2}, reinterpret_cast<std::byte*>(rows.data()));
  EXPECT_THAT(rows, ElementsAre(20, 21, 0, 1, 20, 21));
  std::vector<double> bytes(3);
  shard.gather(3 * sizeof(double), std::as_writable_bytes(std::span(bytes)));
  EXPECT_THAT(bytes, ElementsAre(11, 20, 21));
  EXPECT_EQ(shard.host_values(), reinterpret_cast<const std::byte*>(values_.data()));
  EXPECT_EQ(shard.device_bytes(), 0U);
}

TEST_F(HostShardTest, RejectsEntriesThatDoNotMatchItsShape) {
  make(4, optimizers::SGD{});
  EXPECT_TRUE(fits(push_entry<double>(1, 0, {3}, 0, kWidth, {1, 2})));
  EXPECT_FALSE(fits(push_entry<double>(1, 0, {4}, 0, kWidth, {1, 2})));
  EXPECT_FALSE(fits(push_entry<double>(1, 0, {}, 3, kWidth, {1, 2, 3, 4})));
  EXPECT_FALSE(fits(push_entry<double>(1, 0, {}, ~std::uint64_t{0}, kWidth, {1, 2})));
  EXPECT_FALSE(fits(push_entry<double>(1, 0, {0}, 0, 9, std::vector<double>(9))));
  EXPECT_FALSE(fits(with_op(push_entry<double>(1, 0, {0}, 0, kWidth, {1, 2}), protocol::RowOp(8))));
}

TEST_F(HostShardTest, RejectsGradientsInTheMemoryOfAGpu) {
  make(4, optimizers::SGD{});
  std::vector<std::byte> bytes = push_entry<double>(1, 0, {}, 0, kWidth, {1, 2});
  protocol::PushHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  header.in_staging_buffer = 1;
  header.bytes = protocol::entry_bytes_in_staging_buffer(header.kind, header.rows);
  bytes.assign(header.bytes, std::byte{0});
  std::memcpy(bytes.data(), &header, sizeof header);
  EXPECT_FALSE(fits(bytes));
}

TEST_F(HostShardTest, IsConsistentWhenNoPushIsPartiallyApplied) {
  HostShard& shard = make(4, optimizers::Adam{});
  push({0}, {1, 1}, true, false);
  EXPECT_FALSE(shard.is_consistent());
  EXPECT_EQ(version() % 2, 1U);
  push({1}, {1, 1}, false, true);
  EXPECT_TRUE(shard.is_consistent());
  EXPECT_EQ(version() % 2, 0U);
  EXPECT_EQ(shard.steps(), 1) << "both entries are one push";

  const std::uint64_t before = version();
  push({0}, {1, 1}, true, false);
  shard.abandon();
  EXPECT_TRUE(shard.is_consistent());
  EXPECT_EQ(version(), before + 2);
  shard.abandon();
  EXPECT_EQ(version(), before + 2) << "there was no unfinished push";
}

TEST_F(HostShardTest, CountsPartsAppliedByAnEarlierRun) {
  HostShard& shard = make(4, optimizers::SGD{.learning_rate = 1});
  protocol::PushHeader header;
  header.kind = protocol::PushKind::dense;
  header.rows = 4;
  header.last_part = 0;
  shard.skip(header);
  EXPECT_FALSE(shard.is_consistent());
  push({0}, {1, 1}, false, true);
  EXPECT_TRUE(shard.is_consistent());
  EXPECT_EQ(shard.rows_moved(), 1U);
}

TEST_F(HostShardTest, ResumesWithAnUnpublishedVersion) {
  HostShard& shard = make(4, optimizers::SGD{});
  line_[0] = 7;  // killed during a change
  shard.resume(0);
  EXPECT_EQ(version(), 8U);
  shard.resume(1);
  EXPECT_EQ(version(), 11U);
  EXPECT_FALSE(shard.is_consistent());
}

TEST_F(HostShardTest, FreezesValuesAndSlotsBeforeLaterPushes) {
  HostShard& shard = make(4, optimizers::Adagrad{.learning_rate = 1, .initial_accumulator = 1});
  push({}, {1, 2, 3, 4, 5, 6, 7, 8});
  const std::vector<double> values = values_;
  const std::vector<double> accumulator = slots_[0];
  EXPECT_FALSE(shard.freeze_copies_rows());
  const auto frozen = shard.freeze({});
  push({}, std::vector<double>(8, 9));
  push({2}, {1, 1});
  ASSERT_EQ(frozen->arrays(), 2U);
  EXPECT_EQ(read(*frozen), values);
  EXPECT_EQ(read(*frozen, 1), accumulator);
}

TEST_F(HostShardTest, FreezesRowsTouchedSinceTheMarkedSave) {
  HostShard& shard = make(4, optimizers::SGD{.learning_rate = -1});
  shard.release(shard.freeze({.since = 0, .mark = 7}));
  push({3, 1}, {3, 3, 1, 1});
  const auto changed = shard.freeze({.since = 7, .mark = 8});
  EXPECT_THAT(read(*changed), ElementsAre(1, 1, 3, 3));
  EXPECT_EQ(changed->row(0), 1U);
  shard.release(changed);
  const auto unknown = shard.freeze({.since = 7, .mark = 0});
  EXPECT_EQ(read(*unknown).size(), 8U) << "only the mark of the last save is known, so all rows are saved";
  shard.release(unknown);
  const auto none = shard.freeze({.since = 8, .mark = 0});
  EXPECT_TRUE(read(*none).empty());
}

TEST_F(HostShardTest, CompletesSnapshotsBeforeItsMemoryIsReused) {
  HostShard& shard = make(4, optimizers::SGD{.learning_rate = -1});
  push({}, {0, 1, 10, 11, 20, 21, 30, 31});
  const std::vector<double> values = values_;
  const auto frozen = shard.freeze({});
  shard.complete_snapshots();
  values_.assign(values_.size(), -1);
  EXPECT_EQ(read(*frozen), values);
}

TEST_F(HostShardTest, RestoresPiecesOfValuesAndSlots) {
  HostShard& shard = make(4, optimizers::Adagrad{});
  const std::vector<double> slot = slots_[0];
  const auto frozen = shard.freeze({});
  const std::uint64_t before = version();
  restore({1, 2, 3, 4, 5},
          {{0, 0, 0, 3 * sizeof(double), 2 * sizeof(double)}, {0, 1, 3 * sizeof(double), 16, 0}}, 12);
  EXPECT_THAT(values_, ElementsAre(0, 0, 1, 2, 3, 0, 0, 0));
  EXPECT_EQ((std::vector<double>{slots_[0][0], slots_[0][1], slots_[0][2]}),
            (std::vector<double>{4, 5, slot[2]}));
  EXPECT_EQ(shard.steps(), 12);
  EXPECT_EQ(version(), before + 2);
  EXPECT_EQ(read(*frozen), std::vector<double>(8, 0)) << "a snapshot is from before the restore";
}

TEST_F(HostShardTest, RejectsARestoreBeyondItsArrays) {
  make(4, optimizers::Adagrad{});
  const std::vector<double> numbers(9, 1);
  constexpr std::uint64_t kAll = 4 * kWidth * sizeof(double);
  const auto refused = [&](protocol::RestorePiece piece) {
    EXPECT_THAT(error_of(Code::data_loss, [&] { restore(numbers, {piece}); }), HasSubstr("\"w\""));
  };
  refused({0, 0, 0, kAll + 8, 0});
  refused({0, 0, 0, 8, kAll});
  refused({0, 1, 0, 16, kAll - 8});
  refused({0, 0, 0, 8, ~std::uint64_t{0} - 7});
  EXPECT_EQ(values_, std::vector<double>(8, 0));
  EXPECT_NO_THROW(restore(numbers, {{0, 0, 0, kAll, 0}}));
  EXPECT_EQ(values_, std::vector<double>(8, 1));
}

TEST_F(HostShardTest, UndoesTheLastEntryInTheJournal) {
  constexpr std::uint64_t kEntryBytes = 1 << 16;
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> memory(Journal::bytes_for(kEntryBytes) / sizeof(Line) + 1);
  Journal journal(reinterpret_cast<std::byte*>(memory.data()), Journal::bytes_for(kEntryBytes));
  HostShard& shard = make(4, optimizers::Adagrad{}, {}, 0, &journal);
  const auto entry = push_entry<double>(1, 0, {3, 0}, 0, kWidth, {1, 2, 3, 4});
  journal.begin(parse(entry).header, 0, shard.steps(), 0);
  apply(entry);
  const std::vector<double> values = values_;
  const std::vector<double> accumulator = slots_[0];
  const auto next = push_entry<double>(1, 0, {}, 0, kWidth, std::vector<double>(8, 5));
  journal.begin(parse(next).header, entry.size(), shard.steps(), 0);
  apply(next);
  EXPECT_NE(values_, values);
  shard.undo(journal.last().steps);
  EXPECT_EQ(values_, values);
  EXPECT_EQ(slots_[0], accumulator);
  EXPECT_EQ(shard.steps(), 1);
}

}  // namespace
}  // namespace capstan::ps
