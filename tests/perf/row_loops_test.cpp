// row_loops_test.cpp -- compares the loops that measure a bound with plain indexing.
#include "perf/bench/row_loops.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "perf/bench/ids.hpp"

namespace capstan::perf {
namespace {

constexpr std::uint64_t kRows = 97;
constexpr std::uint64_t kWidths[] = {1, 5, 16, 32, 64, 128, 256, 300};

std::vector<float> numbers(std::size_t count, int from) {
  std::vector<float> out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<float>((from + static_cast<int>(i)) % 1013);
  return out;
}

TEST(RowLoops, GatherAndScatterMatchIndexing) {
  for (const std::uint64_t width : kWidths) {
    for (const int ahead : kPrefetchDistances) {
      std::vector<std::int64_t> ids(41);  // with repetitions
      Ids("zipf", kRows, 1.05, width).draw(ids);
      std::vector<float> table = numbers(kRows * width, 3);
      std::vector<float> out(ids.size() * width), expected(out.size());
      for (std::size_t i = 0; i < out.size(); ++i) {
        expected[i] = table[static_cast<std::size_t>(ids[i / width]) * width + i % width];
      }
      gather(table.data(), ids, width, ahead, out.data());
      EXPECT_EQ(out, expected) << width;

      std::vector<float> replica = table;
      const std::vector<float> gradient = numbers(out.size(), 11);
      for (std::size_t i = 0; i < out.size(); ++i) {
        replica[static_cast<std::size_t>(ids[i / width]) * width + i % width] -= 2 * gradient[i];
      }
      scatter_sgd(table.data(), ids, width, ahead, 2, gradient.data());
      EXPECT_EQ(table, replica) << width;
    }
  }
}

TEST(RowLoops, DenseSgdUpdatesEveryElement) {
  for (const std::size_t size : {1u, 15u, 16u, 1000u}) {
    std::vector<float> table = numbers(size, 5);
    const std::vector<float> gradient = numbers(size, 9);
    std::vector<float> expected = table;
    for (std::size_t i = 0; i < size; ++i) expected[i] -= 3 * gradient[i];
    dense_sgd(table, 3, gradient.data());
    EXPECT_EQ(table, expected);
  }
}

TEST(RowLoops, AddRowsUpdatesEveryArray) {
  const std::vector<std::uint32_t> rows{5, 0, 96, 13};
  for (const std::uint64_t width : kWidths) {
    for (std::size_t count = 1; count <= 4; ++count) {
      for (const bool sparse : {true, false}) {
        std::vector<std::vector<float>> arrays, expected;
        std::vector<float*> pointers;
        for (std::size_t a = 0; a < count; ++a) arrays.push_back(numbers(kRows * width, static_cast<int>(a)));
        expected = arrays;
        for (auto& array : arrays) pointers.push_back(array.data());
        const std::vector<float> gradient = numbers(rows.size() * width, 1);
        for (auto& array : expected) {
          for (std::size_t i = 0; i < gradient.size(); ++i) {
            array[(sparse ? rows[i / width] : i / width) * width + i % width] += gradient[i];
          }
        }
        add_rows(pointers, sparse ? rows.data() : nullptr, rows.size(), width, 2, gradient.data());
        EXPECT_EQ(arrays, expected) << width << " " << count;
      }
    }
  }
}

}  // namespace
}  // namespace capstan::perf
