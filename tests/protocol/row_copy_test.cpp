// row_copy_test.cpp -- copies of any length and alignment, which write nothing outside of their target.
// Tests: src/protocol/row_copy_loop.hpp
#include "protocol/row_copy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace capstan::protocol {
namespace {

constexpr std::byte kUntouched{0xEE};
constexpr std::size_t kMargin = 64;

/// Bytes that start `shift` bytes after a cache line boundary, with a margin on both sides.
class AlignedBuffer {
 public:
  AlignedBuffer(std::size_t bytes, std::size_t shift)
      : bytes_(bytes), buffer_(bytes + 3 * kMargin + shift + 64, kUntouched) {
    const auto at = reinterpret_cast<std::uintptr_t>(buffer_.data()) + kMargin;
    first_ = kMargin + (64 - at % 64) % 64 + shift;
  }
  std::byte* data() { return buffer_.data() + first_; }
  std::vector<std::byte> bytes() const {
    const auto begin = buffer_.begin() + static_cast<std::ptrdiff_t>(first_);
    return {begin, begin + static_cast<std::ptrdiff_t>(bytes_)};
  }
  bool margins_untouched() const {
    for (std::size_t i = 0; i < buffer_.size(); ++i) {
      if ((i < first_ || i >= first_ + bytes_) && buffer_[i] != kUntouched) return false;
    }
    return true;
  }

 private:
  std::size_t bytes_;
  std::vector<std::byte> buffer_;
  std::size_t first_ = 0;
};

std::vector<std::byte> random_bytes(std::size_t count) {
  std::mt19937 random(static_cast<unsigned>(count));
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() % 200);
  return bytes;
}

TEST(RowCopyTest, CopiesBytesOfAnyLength) {
  for (const std::size_t bytes : {0, 1, 1000, (1 << 20) - 1, 1 << 20, (1 << 20) + 77}) {
    const auto from = random_bytes(bytes + 4);
    for (const std::size_t shift : {0, 4, 63}) {
      AlignedBuffer to(bytes, shift);
      copy_bytes(from.data() + 4, bytes, to.data());
      ASSERT_TRUE(std::equal(from.begin() + 4, from.end(), to.data())) << bytes << " bytes, " << shift;
      ASSERT_TRUE(to.margins_untouched()) << bytes << " bytes, " << shift << " past a line";
    }
  }
}

TEST(RowCopyTest, StreamsRowsOfAnySize) {
  constexpr std::uint32_t kRows = 9;
  const std::vector<std::uint32_t> order = {8, 0, 3, 3, 7};
  for (const std::size_t row_bytes : {4, 60, 64, 100, 128, 256, 1000, 4096}) {
    const auto from = random_bytes(kRows * row_bytes + 4);
    std::vector<std::byte> wanted;
    for (const std::uint32_t i : order) {
      const auto begin = from.begin() + static_cast<std::ptrdiff_t>(4 + i * row_bytes);
      wanted.insert(wanted.end(), begin, begin + static_cast<std::ptrdiff_t>(row_bytes));
    }
    AlignedBuffer ordered(wanted.size(), 0);
    stream_rows(from.data() + 4, row_bytes, order, order.size(), ordered.data());
    EXPECT_EQ(ordered.bytes(), wanted) << row_bytes;
    EXPECT_TRUE(ordered.margins_untouched()) << row_bytes;

    AlignedBuffer consecutive(kRows * row_bytes, 0);
    stream_rows(from.data() + 4, row_bytes, {}, kRows, consecutive.data());
    EXPECT_EQ(consecutive.bytes(), std::vector<std::byte>(from.begin() + 4, from.end())) << row_bytes;
    EXPECT_TRUE(consecutive.margins_untouched()) << row_bytes;
  }
}

TEST(RowCopyTest, GathersRowsOfAnySize) {
  for (const std::size_t row_bytes : {4, 64, 100, 128, 256, 512, 1024, 4100}) {
    constexpr std::uint32_t kRows = 50;
    const auto table = random_bytes(kRows * row_bytes);
    std::mt19937 random(3);
    std::vector<std::int64_t> ids(70);
    std::vector<std::uint32_t> rows;
    std::vector<std::byte> wanted;
    for (std::int64_t& id : ids) {
      id = static_cast<std::int64_t>(random() % kRows);
      rows.push_back(static_cast<std::uint32_t>(id));
      const auto begin = table.begin() + static_cast<std::ptrdiff_t>(rows.back() * row_bytes);
      wanted.insert(wanted.end(), begin, begin + static_cast<std::ptrdiff_t>(row_bytes));
    }
    AlignedBuffer by_id(wanted.size(), 4);
    gather_ids(table.data(), row_bytes, ids, by_id.data());
    EXPECT_EQ(by_id.bytes(), wanted);
    EXPECT_TRUE(by_id.margins_untouched());

    std::vector<std::uint32_t> backwards(rows.size());
    std::iota(backwards.rbegin(), backwards.rend(), 0);
    std::reverse(rows.begin(), rows.end());
    AlignedBuffer by_row(wanted.size(), 0);
    gather_rows(table.data(), row_bytes, rows, backwards, by_row.data());
    EXPECT_EQ(by_row.bytes(), wanted);
    EXPECT_TRUE(by_row.margins_untouched());
  }
}

}  // namespace
}  // namespace capstan::protocol
