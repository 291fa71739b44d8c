// update_parts_test.cpp -- several threads give the result of one, for every kind of update.
#include "ps/update/update_parts.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "capstan/dtype.hpp"
#include "ps/journal_memory.hpp"
#include "ps/update/row_ops.hpp"
#include "ps/update/update_in_groups.hpp"

namespace capstan::ps {
namespace {

/// The arrays of a shard with two slots, and an update of it.
template <class T>
struct UpdatedShard {
  std::uint64_t width;
  std::vector<T> values;
  std::vector<Arithmetic<T>> slot0, slot1;
  std::vector<std::uint32_t> rows;
  std::uint64_t first_row = 0;
  std::vector<T> gradient;

  UpdatedShard(std::uint64_t shard_rows, std::uint64_t row_width, std::uint64_t count)
      : width(row_width),
        values(shard_rows * row_width, T(Arithmetic<T>{1})),
        slot0(values.size()),
        slot1(values.size()),
        gradient(count * row_width) {
    std::mt19937_64 random(7);
    for (T& element : gradient) element = T(static_cast<Arithmetic<T>>(1 + random() % 5));
  }
  void draw_rows(std::uint64_t below) {
    std::mt19937_64 random(8);
    rows.resize(gradient.size() / width);
    for (std::uint32_t& row : rows) row = static_cast<std::uint32_t>(random() % below);
  }
  void permute_rows() {
    rows.resize(gradient.size() / width);
    std::iota(rows.begin(), rows.end(), 0U);
    std::shuffle(rows.begin(), rows.end(), std::mt19937_64(9));
  }
  Update<T> update() {
    Update<T> u;
    u.values = values.data();
    u.slot0 = slot0.data();
    u.slot1 = slot1.data();
    u.width = width;
    u.rows = rows.empty() ? nullptr : rows.data();
    u.first_row = first_row;
    u.count = gradient.size() / width;
    u.gradient = gradient.data();
    u.first_value = values.data();
    u.first_gradient = gradient.data();
    return u;
  }
  std::vector<std::byte> contents() const {
    std::vector<std::byte> all;
    const auto add = [&](std::span<const std::byte> bytes) {
      all.insert(all.end(), bytes.begin(), bytes.end());
    };
    add(std::as_bytes(std::span(values)));
    add(std::as_bytes(std::span(slot0)));
    add(std::as_bytes(std::span(slot1)));
    return all;
  }
};

/// Applies an update with 1 and with more threads, and compares the results.
template <class T, class Apply>
void expect_same_result(const UpdatedShard<T>& shard, const Apply& apply) {
  UpdatedShard<T> expected = shard;
  apply(expected.update());
  ASSERT_NE(expected.contents(), shard.contents());
  for (const int threads : {1, 2, 3, 16}) {
    SCOPED_TRACE("threads: " + std::to_string(threads));
    UpdatedShard<T> actual = shard;
    UpdateParts parts(threads);
    parts.apply(actual.update(), [&](const Update<T>& part, std::size_t) { apply(part); });
    EXPECT_EQ(actual.contents(), expected.contents());
  }
}

TEST(UpdateParts, GivesTheResultOfOneThreadForRepeatedRows) {
  for (const std::uint64_t width : {1, 3, 16, 64, 300}) {
    SCOPED_TRACE(width);
    UpdatedShard<float> shard(500, width, 2 * UpdateParts::kLeastBytes / sizeof(float) / width + 1);
    shard.draw_rows(40);
    // Both results depend on the order of the updates of a row.
    expect_same_result(shard, [](const Update<float>& u) { apply(protocol::RowOp::set, u); });
    expect_same_result(shard,
                       [](const Update<float>& u) { apply(optimizers::SGD{.learning_rate = 0.3}, u); });
  }
}

TEST(UpdateParts, GivesTheResultOfOneThreadForEveryDtype) {
  const auto check = []<class T>(T) {
    UpdatedShard<T> shard(2000, 40, 2000);
    shard.permute_rows();
    expect_same_result(shard, [](const Update<T>& u) { apply(protocol::RowOp::add, u); });
    expect_same_result(shard, [](const Update<T>& u) { apply(protocol::RowOp::set, u); });
    if constexpr (!std::is_integral_v<T>)
      expect_same_result(shard, [](const Update<T>& u) { apply(optimizers::Adam{}, u); });
    if constexpr (sizeof(T) >= 4)
      expect_same_result(shard, [](const Update<T>& u) { apply(optimizers::SGD{.learning_rate = 2}, u); });
  };
  check(float{});
  check(double{});
  check(float16{});
  check(bfloat16{});
  check(std::int64_t{});
  check(std::int32_t{});
}

TEST(UpdateParts, RoundsStochasticallyAsOneThreadDoes) {
  UpdatedShard<bfloat16> shard(2000, 40, 2000);
  shard.permute_rows();
  expect_same_result(shard, [](Update<bfloat16> u) {
    u.rounding.stochastic = true;
    u.rounding.seed = 5;
    apply(optimizers::SGD{.learning_rate = 0.001}, u);
  });
}

TEST(UpdateParts, DividesConsecutiveRowsIntoRanges) {
  for (const std::uint64_t width : {1, 7, 64, 40000}) {
    SCOPED_TRACE(width);
    const std::uint64_t count = 2 * UpdateParts::kLeastBytes / sizeof(float) / width + 1;
    UpdatedShard<float> shard(count + 3, width, count);
    expect_same_result(shard, [](const Update<float>& u) { apply(optimizers::Adagrad{}, u); });
    shard.first_row = 3;
    expect_same_result(shard, [](const Update<float>& u) { apply(protocol::RowOp::add, u); });
  }
}

TEST(UpdateParts, GivesNeighboringShortRowsToOnePart) {
  constexpr std::uint64_t kWidth = 3;  // 12 bytes: a line holds 5 rows, so 4 neighbors stay together
  UpdatedShard<float> shard(20000, kWidth, 20000);
  shard.permute_rows();
  UpdateParts parts(3);
  std::mutex mutex;
  std::vector<std::set<std::uint32_t>> lines(3);
  std::size_t rows = 0;
  parts.apply(shard.update(), [&](const Update<float>& part, std::size_t number) {
    const std::lock_guard lock(mutex);
    rows += part.count;
    for (std::uint64_t i = 0; i < part.count; ++i) lines[number].insert(part.rows[i] / 4);
  });
  EXPECT_EQ(rows, 20000U);
  EXPECT_EQ(lines[0].size() + lines[1].size() + lines[2].size(), 5000U);
  for (const auto& of_part : lines) EXPECT_GT(of_part.size(), 1000U) << "parts of different sizes";
}

TEST(UpdateParts, DoesNotDivideSmallUpdates) {
  UpdatedShard<float> shard(100, 64, UpdateParts::kLeastBytes / 256 - 1);
  shard.permute_rows();
  UpdateParts parts(2);
  int calls = 0;
  parts.apply(shard.update(), [&](const Update<float>& part, std::size_t number) {
    ++calls;
    EXPECT_EQ(number, 0U);
    EXPECT_EQ(part.count, shard.rows.size());
  });
  EXPECT_EQ(calls, 1);
}

/// Also tests that a journal of the entry's size holds the groups of all parts.
TEST(UpdateParts, JournalUndoesThePartsOfAllThreads) {
  for (const bool sparse : {true, false}) {
    SCOPED_TRACE(sparse);
    UpdatedShard<float> shard(3000, 16, 3000);
    if (sparse) shard.draw_rows(900);
    const auto before = shard.contents();
    UpdateParts parts(16);
    JournalMemory memory(protocol::entry_bytes(protocol::PushKind::sparse, 3000, 64));
    Journal journal = memory.open();
    journal.begin({}, 0, 0, 0);
    const std::vector<std::byte*> slots{reinterpret_cast<std::byte*>(shard.slot0.data()),
                                        reinterpret_cast<std::byte*>(shard.slot1.data())};
    parts.apply(shard.update(), [&](const Update<float>& part, std::size_t number) {
      const auto add = [](const Update<float>& group) { apply(optimizers::Adam{}, group); };
      apply_in_groups(part, shard.values.data(), slots, journal, add, number);
    });
    EXPECT_NE(shard.contents(), before);
    EXPECT_TRUE(memory.is_guard_intact());
    std::byte* bases[Journal::kArrays] = {reinterpret_cast<std::byte*>(shard.values.data()), slots[0],
                                          slots[1]};
    memory.open().undo(bases);
    EXPECT_EQ(shard.contents(), before);
  }
}

}  // namespace
}  // namespace capstan::ps
