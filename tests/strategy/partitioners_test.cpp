// partitioners_test.cpp -- the partitioners, on TensorFlow's test cases.
#include "capstan/partitioners.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "capstan/error.hpp"

namespace capstan {
namespace {

std::int64_t shards(const Partitioner& partitioner, const std::vector<std::int64_t>& shape,
                    DType dtype = DType::float32) {
  const Partitions parts = partitioner(shape, dtype);
  EXPECT_EQ(parts.axes.size(), 1U);
  return parts.axes.at(0);
}

TEST(Partitioners, FixedShards) {
  EXPECT_EQ(shards(FixedShardsPartitioner{2}, {10, 3}), 2);
  EXPECT_EQ(shards(FixedShardsPartitioner{7}, {3}), 3);
  EXPECT_EQ(shards(FixedShardsPartitioner{}, {10}), 1);
}

TEST(Partitioners, MinSize) {
  EXPECT_EQ(shards(MinSizePartitioner{4, 2}, {6, 1}), 2);
  EXPECT_EQ(shards(MinSizePartitioner{4, 10}, {6, 1}), 6);
  EXPECT_EQ(shards(MinSizePartitioner{256 << 10, 16}, {1024, 1024}), 16);
  EXPECT_EQ(shards(MinSizePartitioner{256 << 10, 2}, {1024, 1024}), 2);
  EXPECT_EQ(shards(MinSizePartitioner{256 << 10, 100}, {10, 10}), 1);
  EXPECT_EQ(shards(MinSizePartitioner{25, 100}, {10}), 2);                  // 40 bytes
  EXPECT_EQ(shards(MinSizePartitioner{25, 100}, {10}, DType::float64), 4);  // 80 bytes
}

TEST(Partitioners, MaxSize) {
  EXPECT_EQ(shards(MaxSizePartitioner{4}, {6, 1}), 6);
  EXPECT_EQ(shards(MaxSizePartitioner{4, 2}, {6, 1}), 2);
  EXPECT_EQ(shards(MaxSizePartitioner{1024}, {6, 1}), 1);
  EXPECT_EQ(shards(MaxSizePartitioner{8}, {7}), 4);       // two rows fit
  EXPECT_EQ(shards(MaxSizePartitioner{8}, {5, 100}), 5);  // not even one row fits
}

TEST(Partitioners, RejectNonPositiveSizes) {
  const auto expect = [](const Partitioner& partitioner, const std::string& text) {
    try {
      (void)shards(partitioner, {4});
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      EXPECT_EQ(std::string(error.what()), text);
    }
  };
  expect(MinSizePartitioner{0, 1}, "min_shard_bytes is 0; it must be positive");
  expect(MinSizePartitioner{1, -2}, "max_shards is -2; it must be positive");
  expect(MaxSizePartitioner{}, "max_shard_bytes is 0; it must be positive");
  expect(MaxSizePartitioner{4, 0}, "max_shards is 0; it must be positive");
}

}  // namespace
}  // namespace capstan
