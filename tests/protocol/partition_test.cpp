// partition_test.cpp -- the div rule, compared with dealing out rows one by one.
#include "protocol/partition.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace capstan::protocol {
namespace {

std::vector<std::uint64_t> sizes(std::uint64_t rows, std::uint64_t shards) {
  const DivPartition partition(rows, shards);
  std::vector<std::uint64_t> out;
  for (std::uint64_t s = 0; s < shards; ++s) out.push_back(partition.rows_of(s));
  return out;
}

TEST(Partition, AgreesWithTensorFlow) {
  using Sizes = std::vector<std::uint64_t>;
  EXPECT_EQ(sizes(10, 4), (Sizes{3, 3, 2, 2}));
  EXPECT_EQ(sizes(13, 5), (Sizes{3, 3, 3, 2, 2}));
  EXPECT_EQ(sizes(5, 2), (Sizes{3, 2}));
  EXPECT_EQ(sizes(32, 3), (Sizes{11, 11, 10}));
  EXPECT_EQ(sizes(6, 2), (Sizes{3, 3}));
  EXPECT_EQ(sizes(1, 1), (Sizes{1}));
  EXPECT_EQ(sizes(4, 4), (Sizes{1, 1, 1, 1}));
}

TEST(Partition, AgreesWithDealingOutRowsOneByOne) {
  for (std::uint64_t rows = 1; rows <= 70; ++rows) {
    for (std::uint64_t shards = 1; shards <= rows; ++shards) {
      // Dealing rows to the shards in turn gives the size of each shard.
      std::vector<std::uint64_t> dealt(shards);
      for (std::uint64_t row = 0; row < rows; ++row) ++dealt[row % shards];
      const DivPartition partition(rows, shards);
      std::uint64_t row = 0;
      for (std::uint64_t s = 0; s < shards; ++s) {
        ASSERT_EQ(partition.rows_of(s), dealt[s]) << rows << " rows, " << shards << " shards, shard " << s;
        ASSERT_EQ(partition.first_row_of(s), row) << rows << " rows, " << shards << " shards, shard " << s;
        for (std::uint64_t end = row + dealt[s]; row < end; ++row) {
          ASSERT_EQ(partition.shard_of(row), s) << rows << " rows, " << shards << " shards, row " << row;
        }
      }
      ASSERT_EQ(row, rows);
    }
  }
}

TEST(Partition, SupportsTablesLargerThan32Bits) {
  const std::uint64_t rows = (std::uint64_t{1} << 40) + 5;
  const DivPartition partition(rows, 7);
  std::uint64_t first = 0;
  for (std::uint64_t s = 0; s < 7; ++s) {
    EXPECT_EQ(partition.first_row_of(s), first);
    EXPECT_EQ(partition.shard_of(first), s);
    first += partition.rows_of(s);
    EXPECT_EQ(partition.shard_of(first - 1), s);
  }
  EXPECT_EQ(first, rows);
}

}  // namespace
}  // namespace capstan::protocol
