// key_search_test.cpp -- searches of one key and of many keys agree, for full lines and missing keys too.
#include "protocol/key_search.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "protocol/row_copy.hpp"

namespace capstan::protocol {
namespace {

constexpr std::uint64_t kLinesOfAPart = 16;

/// An index of fixed size, in which key k has the row of its place in `keys` + 1.
class KeySearchTest : public testing::Test {
 protected:
  KeySearchTest() : lines_(kLinesOfAPart * TableHeader::kSubIndexes) {
    for (std::uint32_t s = 0; s < TableHeader::kSubIndexes; ++s)
      index_[s] = {&lines_[s * kLinesOfAPart], kLinesOfAPart - 1};
    // At a load of 0.8, some keys are one or more lines behind their home. The first sub-index is full.
    std::mt19937_64 random(3);
    while (keys_.size() < lines_.size() * IndexLine::kEntries * 4 / 5 ||
           keys_of_[0] < kLinesOfAPart * IndexLine::kEntries)
      add(static_cast<std::int64_t>(random()));
  }

  void add(std::int64_t key) {
    const std::uint64_t hash = hash_of(key);
    std::uint64_t& keys = keys_of_[hash % TableHeader::kSubIndexes];
    if (keys == kLinesOfAPart * IndexLine::kEntries) return;
    ++keys;
    keys_.push_back(key);
    const SubIndexLines& part = index_.of(hash);
    std::uint64_t at = part.home(hash);
    const auto line = [&]() -> IndexLine& {
      return lines_[static_cast<std::size_t>(part.first + at - &lines_[0])];
    };
    for (; (line().state & IndexLine::kAll) == IndexLine::kAll; at = (at + 1) & part.mask)
      line().state |= IndexLine::kOverflowed;
    const int entry = std::countr_one(line().state);
    line().keys[entry] = key;
    line().rows[entry] = static_cast<std::uint32_t>(keys_.size());
    line().state |= 1U << entry;
  }

  bool in_home(std::int64_t key) const { return index_.home(hash_of(key))->entries_with(key) != 0; }

  std::vector<std::uint64_t> keys_of_ = std::vector<std::uint64_t>(TableHeader::kSubIndexes);
  std::vector<IndexLine> lines_;
  IndexLines index_;
  std::vector<std::int64_t> keys_;
};

TEST_F(KeySearchTest, FindsEachKeyAndNoOther) {
  std::vector<std::int64_t> keys;
  std::vector<std::uint32_t> expected;
  std::mt19937_64 random(4);
  for (std::uint32_t i = 0; i < keys_.size(); ++i) {
    keys.push_back(keys_[i]);
    expected.push_back(i + 1);
    keys.push_back(static_cast<std::int64_t>(random()));  // new, except with a probability of 2^-52
    expected.push_back(kDefaultRow);
  }
  ASSERT_GT(std::count_if(keys_.begin(), keys_.end(), [this](std::int64_t key) { return !in_home(key); }),
            100);
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{15}, std::size_t{17},
                                  std::size_t{63}, std::size_t{65}, std::size_t{81}, keys.size()}) {
    std::vector<std::uint32_t> rows(count, 7);
    find_keys(index_, std::span(keys).first(count), rows);
    EXPECT_EQ(rows, std::vector<std::uint32_t>(expected.begin(),
                                               expected.begin() + static_cast<std::ptrdiff_t>(count)));
    for (std::size_t i = 0; i < count; ++i)
      ASSERT_EQ(find_key(index_, keys[i], hash_of(keys[i])), expected[i]);
  }
}

// A search compares the key with complete lines, in which the rows follow the keys.
TEST_F(KeySearchTest, DoesNotTakeRowsOrUnusedEntriesForKeys) {
  for (IndexLine& line : lines_) {
    line = {};
    line.state = IndexLine::kOverflowed;
    std::memset(line.keys, 0xff, sizeof line.keys);
    std::memset(line.rows, 0xff, sizeof line.rows);
  }
  std::vector<std::int64_t> keys{-1, 0, 1, std::numeric_limits<std::int64_t>::min()};
  std::vector<std::uint32_t> rows(keys.size(), 7);
  find_keys(index_, keys, rows);
  EXPECT_EQ(rows, std::vector<std::uint32_t>(keys.size(), kDefaultRow));
  for (IndexLine& line : lines_) line.state |= 1U << 4;  // the last entry of each line is -1
  find_keys(index_, keys, rows);
  EXPECT_EQ(rows, (std::vector<std::uint32_t>{~0U, 0, 0, 0}));
}

TEST_F(KeySearchTest, CopiesRowsOfEveryWidth) {
  std::mt19937_64 random(5);
  for (const std::uint64_t row_bytes : {4, 20, 64, 128, 256, 300, 512, 1024, 5000}) {
    std::vector<std::byte> values((keys_.size() + 1) * row_bytes);
    for (std::byte& value : values) value = static_cast<std::byte>(random());
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{40}, std::size_t{333}}) {
      std::vector<std::int64_t> keys(count);
      std::vector<std::uint32_t> backwards(count), rows(count);
      for (std::size_t i = 0; i < count; ++i) {
        keys[i] = i % 9 == 4 ? static_cast<std::int64_t>(random()) : keys_[random() % keys_.size()];
        backwards[i] = static_cast<std::uint32_t>(count - 1 - i);
      }
      std::vector<std::byte> out(count * row_bytes), reversed(count * row_bytes);
      find_keys(index_, keys, rows);
      gather_rows(values.data(), row_bytes, rows, {}, out.data());
      gather_rows(values.data(), row_bytes, rows, backwards, reversed.data());
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(rows[i], find_key(index_, keys[i], hash_of(keys[i])));
        const std::byte* row = values.data() + rows[i] * row_bytes;
        ASSERT_EQ(std::memcmp(out.data() + i * row_bytes, row, row_bytes), 0) << row_bytes << " " << i;
        ASSERT_EQ(std::memcmp(reversed.data() + backwards[i] * row_bytes, row, row_bytes), 0) << row_bytes;
      }
    }
  }
}

}  // namespace
}  // namespace capstan::protocol
