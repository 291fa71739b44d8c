// update_in_groups_test.cpp -- updates divided into groups, with kills between and within groups.
#include "ps/update/update_in_groups.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "capstan/dtype.hpp"
#include "ps/journal_memory.hpp"

namespace capstan::ps {
namespace {

/// Test rule: w += g; slots count the updates of each element.
template <class T>
void apply_plainly(const Update<T>& u) {
  for (std::uint64_t i = 0; i < u.count; ++i) {
    const std::uint64_t first = (u.rows != nullptr ? u.rows[i] : u.first_row + i) * u.width;
    for (std::uint64_t j = 0; j < u.width; ++j) {
      using A = Arithmetic<T>;
      u.values[first + j] = T(
          static_cast<A>(static_cast<A>(u.values[first + j]) + static_cast<A>(u.gradient[i * u.width + j])));
      if (u.slot0 != nullptr) u.slot0[first + j] = static_cast<A>(u.slot0[first + j] + A{1});
      if (u.slot1 != nullptr) u.slot1[first + j] = static_cast<A>(u.slot1[first + j] + A{2});
    }
  }
}

/// An update of a shard of `shard_rows` rows.
struct UpdateShape {
  std::string name;
  std::uint64_t shard_rows;
  std::uint64_t width;
  std::vector<std::uint32_t> rows = {};  // empty: `count` rows from `first_row` on
  std::uint64_t first_row = 0;
  std::uint64_t count = 0;
};

std::vector<std::uint32_t> rows_backwards(std::uint32_t rows) {
  std::vector<std::uint32_t> all(rows);
  std::iota(all.rbegin(), all.rend(), 0U);
  return all;
}

std::vector<UpdateShape> update_shapes() {
  return {
      {"many short rows", 200, 1, rows_backwards(200)},
      {"a full group and one row", 65, 3, rows_backwards(65)},
      {"rows named twice in and across groups", 9, 5, std::vector<std::uint32_t>(100, 7)},
      {"rows of a third of a group", 7, 700, {6, 0, 3, 1}},
      {"rows as long as a group", 3, 2048, {2, 0}},
      {"rows one longer than a group", 3, 2049, {2, 0}},
      {"rows that span several groups", 3, 20000, {1}},
      {"no rows", 3, 4, {}},
      {"one dense row", 4, 3, {}, 2, 1},
      {"some dense rows", 10, 33, {}, 4, 5},
      {"dense rows longer than a group", 4, 5000, {}, 1, 3},
  };
}

struct KilledInGroup {};

template <class T>
class UpdateInGroups : public testing::Test {
 protected:
  using Slot = Arithmetic<T>;

  void make(const UpdateShape& shape, std::size_t slots) {
    const std::uint64_t elements = shape.shard_rows * shape.width;
    values_.resize(elements);
    for (std::size_t i = 0; i < elements; ++i) values_[i] = T(static_cast<Slot>(i % 50));
    slots_.assign(slots, std::vector<Slot>(elements, Slot{3}));
    update_ = {};
    update_.values = values_.data();
    if (slots > 0) update_.slot0 = slots_[0].data();
    if (slots > 1) update_.slot1 = slots_[1].data();
    update_.width = shape.width;
    update_.rows = shape.rows.empty() ? nullptr : shape.rows.data();
    update_.first_row = shape.first_row;
    update_.count = shape.rows.empty() ? shape.count : shape.rows.size();
    gradient_.resize(update_.count * shape.width);
    for (std::size_t i = 0; i < gradient_.size(); ++i) gradient_[i] = T(static_cast<Slot>(1 + i % 7));
    update_.gradient = gradient_.data();
  }
  std::uint64_t entry_bytes() const {
    const auto kind = update_.rows != nullptr ? protocol::PushKind::sparse : protocol::PushKind::dense;
    return protocol::entry_bytes(kind, update_.count, update_.width * sizeof(T));
  }
  std::vector<std::byte*> slot_addresses() {
    std::vector<std::byte*> addresses;
    for (auto& slot : slots_) addresses.push_back(reinterpret_cast<std::byte*>(slot.data()));
    return addresses;
  }
  template <class Apply>
  void apply_in_groups_of(Journal& journal, const Apply& apply) {
    apply_in_groups(update_, values_.data(), slot_addresses(), journal, apply);
  }
  /// Returns the bytes of all arrays.
  std::vector<std::byte> contents() const {
    const auto values = std::as_bytes(std::span(values_));
    std::vector<std::byte> all(values.begin(), values.end());
    for (const auto& slot : slots_) {
      const auto bytes = std::as_bytes(std::span(slot));
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
    return all;
  }
  void undo(JournalMemory& memory) {
    std::byte* bases[Journal::kArrays] = {reinterpret_cast<std::byte*>(values_.data())};
    const auto slots = slot_addresses();
    std::copy(slots.begin(), slots.end(), bases + 1);
    memory.open().undo(bases);
  }

  std::vector<T> values_;
  std::vector<std::vector<Slot>> slots_;
  std::vector<T> gradient_;
  Update<T> update_;
};

using GroupedTypes =
    testing::Types<float, double, float16, bfloat16, std::int64_t, std::int32_t, std::uint8_t>;
TYPED_TEST_SUITE(UpdateInGroups, GroupedTypes);

TYPED_TEST(UpdateInGroups, MatchesTheUndividedUpdate) {
  for (const UpdateShape& shape : update_shapes()) {
    for (const std::size_t slots : {0, 1, 2}) {
      SCOPED_TRACE(shape.name + ", slots: " + std::to_string(slots));
      this->make(shape, slots);
      apply_plainly(this->update_);
      const auto expected = this->contents();
      this->make(shape, slots);
      JournalMemory memory(this->entry_bytes());
      Journal journal = memory.open();
      journal.begin({}, 0, 0, 0);
      this->apply_in_groups_of(journal, apply_plainly<TypeParam>);
      EXPECT_EQ(this->contents(), expected);
      EXPECT_TRUE(memory.is_guard_intact());
    }
  }
}

/// Also tests that a journal of the entry's size holds all of its groups.
TYPED_TEST(UpdateInGroups, IsUndoneAfterAKillInAnyGroup) {
  for (const UpdateShape& shape : update_shapes()) {
    for (const std::size_t slots : {0, 1, 2}) {
      SCOPED_TRACE(shape.name + ", slots: " + std::to_string(slots));
      this->make(shape, slots);
      const auto before = this->contents();
      std::size_t groups = 1;
      for (std::size_t kill_at = 0; kill_at < groups; ++kill_at) {
        JournalMemory memory(this->entry_bytes());
        Journal journal = memory.open();
        journal.begin({}, 0, 0, 0);
        std::size_t group = 0;
        const auto apply = [&](const Update<TypeParam>& part) {
          apply_plainly(part);
          if (group++ == kill_at) throw KilledInGroup{};
        };
        try {
          this->apply_in_groups_of(journal, apply);
        } catch (const KilledInGroup&) {
          groups = kill_at + 2;  // there may be another group
        }
        this->undo(memory);
        ASSERT_EQ(this->contents(), before) << "killed in group " << kill_at;
      }
    }
  }
}

TYPED_TEST(UpdateInGroups, GroupsFitTheJournalsLimits) {
  for (const UpdateShape& shape : update_shapes()) {
    SCOPED_TRACE(shape.name);
    this->make(shape, 2);
    JournalMemory memory(this->entry_bytes());
    Journal journal = memory.open();
    journal.begin({}, 0, 0, 0);
    std::uint64_t elements = 0;
    this->apply_in_groups_of(journal, [&](const Update<TypeParam>& part) {
      EXPECT_LE(part.count, Journal::kGroupRows);
      EXPECT_LE(part.count * part.width * sizeof(TypeParam), Journal::kGroupBytes);
      EXPECT_LE(part.count * part.width * sizeof(Arithmetic<TypeParam>), Journal::kGroupBytes);
      elements += part.count * part.width;
    });
    EXPECT_EQ(elements, this->update_.count * this->update_.width);
  }
}

TYPED_TEST(UpdateInGroups, UndoRestoresOnlyValuesIfSlotsDoNotChange) {
  const std::vector<std::uint32_t> rows{4, 1};
  this->make({"", 5, 3, rows}, 2);
  this->update_.rows = rows.data();
  this->update_.slot0 = this->update_.slot1 = nullptr;
  const auto values = this->values_;
  JournalMemory memory(this->entry_bytes());
  Journal journal = memory.open();
  journal.begin({}, 0, 0, 0);
  apply_in_groups(this->update_, this->values_.data(), {}, journal, apply_plainly<TypeParam>);
  EXPECT_NE(this->values_, values);
  for (auto& slot : this->slots_) std::fill(slot.begin(), slot.end(), Arithmetic<TypeParam>{9});
  const auto slots = this->slots_;
  this->undo(memory);
  EXPECT_EQ(this->values_, values);
  EXPECT_EQ(this->slots_, slots);
}

}  // namespace
}  // namespace capstan::ps
