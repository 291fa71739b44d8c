// key_index_test.cpp -- the index of a dynamic table against std::unordered_map, and its concurrent readers.
// Tests: src/base/key_hash.hpp
// Tests: src/protocol/table_layout.cpp
// Tests: src/protocol/table_layout.hpp
// Tests: src/transport/memory/reserved_memory.cpp
#include "ps/shard/key_index.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/fence.hpp"
#include "protocol/table_reader.hpp"
#include "transport/memory/reserved_memory.hpp"

namespace capstan::ps {
namespace {

using protocol::hash_of;
using protocol::kDefaultRow;
using protocol::TableHeader;
using protocol::TableLayout;
using protocol::TableReader;

constexpr std::uint64_t kRows = std::uint64_t{1} << 20;

class KeyIndexTest : public testing::Test {
 protected:
  TableReader reader() const { return {memory_.get(), layout_}; }
  std::uint32_t find(std::int64_t key) const { return index_.find(key, hash_of(key)); }
  bool insert(std::int64_t key, std::uint32_t row) { return index_.insert(key, hash_of(key), row); }
  const TableHeader& header() const { return *reinterpret_cast<const TableHeader*>(memory_.get()); }

  TableLayout layout_{kRows, 256, {256}};
  std::shared_ptr<std::byte> memory_ = transport::reserve_memory(layout_.bytes());
  KeyIndex index_{memory_.get(), layout_, [](std::byte* from, std::uint64_t bytes) {
                    transport::release_memory({from, bytes});
                  }};
};

TEST_F(KeyIndexTest, AgreesWithAMapOverMillionsOfOperations) {
  std::unordered_map<std::int64_t, std::uint32_t> map;
  std::vector<std::int64_t> keys;
  std::mt19937_64 random(1);
  for (std::uint32_t step = 1; step <= 2'000'000; ++step) {
    const std::uint64_t what = random() % 10;
    if (what < 5 || keys.empty()) {
      const auto key = static_cast<std::int64_t>(random() % 400'000 * 1'000'003);
      if (map.try_emplace(key, step % (kRows - 1) + 1).second) {
        ASSERT_TRUE(insert(key, map[key]));
        keys.push_back(key);
      }
      ASSERT_EQ(find(key), map[key]);
    } else if (what < 8) {
      const std::size_t at = random() % keys.size();
      index_.erase(keys[at], hash_of(keys[at]));
      map.erase(keys[at]);
      ASSERT_EQ(find(keys[at]), kDefaultRow);
      keys[at] = keys.back();
      keys.pop_back();
    } else {
      const auto key = static_cast<std::int64_t>(random() % 500'000 * 1'000'003);
      const auto found = map.find(key);
      ASSERT_EQ(find(key), found == map.end() ? kDefaultRow : found->second);
    }
  }
  for (const auto& [key, row] : map) ASSERT_EQ(find(key), row);
  EXPECT_GT(header().growths, TableHeader::kSubIndexes);
}

TEST_F(KeyIndexTest, AcceptsAnyKeys) {
  std::vector<std::int64_t> keys{0, -1, 1, std::numeric_limits<std::int64_t>::min(),
                                 std::numeric_limits<std::int64_t>::max()};
  for (std::int64_t i = 1; i <= 20'000; ++i) {
    keys.push_back(i + 1);                                                               // sequential
    keys.push_back(i << 32);                                                             // equal low bits
    keys.push_back(static_cast<std::int64_t>(static_cast<std::uint64_t>(i) << 48 | 7));  // equal low bits
  }
  std::unordered_map<std::int64_t, std::uint32_t> map;
  for (const std::int64_t key : keys) {
    const auto row = static_cast<std::uint32_t>(map.size() + 1);
    if (map.emplace(key, row).second) {
      ASSERT_TRUE(insert(key, row));
    }
  }
  for (const auto& [key, row] : map) ASSERT_EQ(find(key), row) << key;
  EXPECT_EQ(find(1'000'000'007), kDefaultRow);
}

TEST_F(KeyIndexTest, NeedsFewLinesPerKey) {
  for (std::int64_t key = 0; key < 500'000; ++key) ASSERT_TRUE(insert(key, 1));
  std::uint64_t lines = 0;
  for (const auto& sub : header().sub_indexes) lines += std::uint64_t{1} << sub.level;
  EXPECT_LE(lines * sizeof(protocol::IndexLine), 500'000U * 24 * 2);  // half full after a growth
}

TEST_F(KeyIndexTest, IsEmptyAfterClear) {
  for (std::int64_t key = 0; key < 50'000; ++key) ASSERT_TRUE(insert(key, 3));
  index_.clear();
  for (std::int64_t key = 0; key < 50'000; ++key) ASSERT_EQ(find(key), kDefaultRow);
  for (std::int64_t key = 0; key < 50'000; ++key) ASSERT_TRUE(insert(key, 4));
  EXPECT_EQ(find(49'999), 4U);
}

TEST(SmallKeyIndex, RejectsKeysWhenFull) {
  const TableLayout layout(1000, 4, {});
  const auto memory = transport::reserve_memory(layout.bytes());
  KeyIndex index(memory.get(), layout, [](std::byte*, std::uint64_t) {});
  std::int64_t key = 0;
  while (index.insert(key, hash_of(key), 1)) ++key;
  EXPECT_GT(key, 1000);
  EXPECT_EQ(index.find(key, hash_of(key)), kDefaultRow);
  EXPECT_EQ(index.find(0, hash_of(0)), 1U);
}

/// The value of each row is its key. The writer inserts and erases keys, reuses rows, and grows the index.
/// With CAPSTAN_TESTS_LONG, until the readers have compared 10^9 rows.
TEST_F(KeyIndexTest, ReadersNeverSeeTheRowOfAnotherKey) {
  constexpr std::uint32_t kUsed = 4000;
  constexpr std::uint64_t kKeys = 8000;
  auto* const values = reinterpret_cast<std::int64_t*>(memory_.get() + layout_.values());
  const auto value = [&](std::uint32_t row) -> std::int64_t& { return values[row * 32]; };
  std::atomic<bool> done{false};
  std::atomic<std::uint64_t> valid{0}, wrong{0};
  const auto read = [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    TableReader::Epochs epochs(reader());
    while (!done) {
      epochs.begin(reader());
      std::int64_t keys[32];
      std::int64_t copies[32];
      std::uint32_t rows[32];
      for (std::int64_t& key : keys) key = static_cast<std::int64_t>(random() % kKeys);
      protocol::find_keys(epochs.index(), keys, rows);
      for (int i = 0; i < 32; ++i) copies[i] = __atomic_load_n(&value(rows[i]), __ATOMIC_RELAXED);
      thread_fence(std::memory_order_acquire);
      (void)epochs.check(reader());
      std::uint64_t compared = 0;
      for (int i = 0; i < 32; ++i) {
        if (!epochs.valid(hash_of(keys[i])) || rows[i] == kDefaultRow) continue;
        ++compared;
        if (copies[i] != keys[i]) ++wrong;
      }
      valid += compared;
    }
  };
  std::thread first(read, 1), second(read, 2);
  std::mt19937_64 random(3);
  std::vector<std::pair<std::int64_t, std::uint32_t>> present;
  std::vector<std::uint32_t> free;
  for (std::uint32_t row = kUsed; row > 0; --row) free.push_back(row);
  const std::uint64_t min_compared = std::getenv("CAPSTAN_TESTS_LONG") != nullptr ? 1'000'000'000 : 1000;
  for (int round = 0; round < 20 || valid < min_compared; ++round) {
    for (int step = 0; step < 50'000; ++step) {
      if (!free.empty() && (present.size() < kUsed / 2 || random() % 2 == 0)) {
        const auto key = static_cast<std::int64_t>(random() % kKeys);
        if (find(key) != kDefaultRow) continue;
        const std::uint32_t row = free.back();
        free.pop_back();
        __atomic_store_n(&value(row), key, __ATOMIC_RELAXED);
        ASSERT_TRUE(insert(key, row));
        present.emplace_back(key, row);
      } else if (!present.empty()) {
        std::swap(present[random() % present.size()], present.back());
        const auto [key, row] = present.back();
        present.pop_back();
        index_.erase(key, hash_of(key));
        free.push_back(row);
      }
    }
    index_.clear();  // grows again from the smallest size
    for (const auto& [key, row] : present) free.push_back(row);
    present.clear();
  }
  done = true;
  first.join();
  second.join();
  EXPECT_EQ(wrong, 0U);
  EXPECT_GE(valid, min_compared);
}

TEST(TableLayout, DividesKeysEvenly) {
  std::vector<std::uint64_t> of_shard(3);
  for (std::int64_t key = 0; key < 30'000; ++key) ++of_shard[protocol::shard_of_hash(hash_of(key), 3)];
  for (const std::uint64_t keys : of_shard) EXPECT_NEAR(static_cast<double>(keys), 10'000, 500);
}

TEST(ReservedMemory, IsZeroAfterItsRelease) {
  const auto memory = transport::reserve_memory(std::size_t{1} << 40);  // far more than this host has
  std::byte* const at = memory.get() + (std::size_t{1} << 39) + 100;
  for (std::size_t i = 0; i < 20'000; ++i) at[i] = std::byte{1};
  transport::release_memory({at + 10, 19'000});
  EXPECT_EQ(at[9], std::byte{1});
  for (std::size_t i = 10; i < 19'010; ++i) ASSERT_EQ(at[i], std::byte{0}) << i;
  EXPECT_EQ(at[19'010], std::byte{1});
}

}  // namespace
}  // namespace capstan::ps
