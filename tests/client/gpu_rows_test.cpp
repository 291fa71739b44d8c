// gpu_rows_test.cpp -- gathers and copies of rows in GPU memory.
#include "client/channel/gpu_rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "tests/gpu/gpu_to_test.hpp"

namespace capstan::client {
namespace {

constexpr std::size_t kGpuRowFloats = 3;
constexpr std::uint64_t kGpuRowBytes = kGpuRowFloats * sizeof(float);

class GpuRowsTest : public gpu::OnGpu {
 protected:
  /// Returns rows [first, first + rows); row r has the elements 10 * r, 10 * r + 1, ...
  gpu::Values<float> table_from(std::size_t first, std::size_t rows) {
    std::vector<float> values;
    for (std::size_t row = first; row < first + rows; ++row) {
      for (std::size_t i = 0; i < kGpuRowFloats; ++i) values.push_back(static_cast<float>(10 * row + i));
    }
    return to_gpu(values);
  }
  static std::vector<float> rows_of(const std::vector<std::int64_t>& ids) {
    std::vector<float> values;
    for (const std::int64_t id : ids) {
      for (std::size_t i = 0; i < kGpuRowFloats; ++i) {
        values.push_back(static_cast<float>(static_cast<std::size_t>(id) * 10 + i));
      }
    }
    return values;
  }
  static const std::byte* bytes_of(const gpu::Values<float>& values) {
    return reinterpret_cast<const std::byte*>(values.data());
  }
  std::vector<float> gather(GpuRows& rows, const std::vector<GpuRows::Part>& table,
                            std::vector<std::int64_t> ids) {
    const gpu::Values<float> out(0, ids.size() * kGpuRowFloats);
    rows.gather(*stream_, staging_, table, kGpuRowBytes, ids, reinterpret_cast<std::byte*>(out.data()));
    std::fill(ids.begin(), ids.end(), -1);  // the caller may reuse it on return
    return to_host(out);
  }

  gpu::Staging staging_{0, 64};  // row numbers need several pieces
};

TEST_F(GpuRowsTest, GathersRowsOfATableOfOnePart) {
  const auto table = table_from(0, 50);
  GpuRows rows(0);
  EXPECT_EQ(rows.gpu(), 0);
  const std::vector<std::int64_t> ids{49, 0, 7, 7, 12};
  EXPECT_EQ(gather(rows, {{bytes_of(table), 0, 50}}, ids), rows_of(ids));
}

TEST_F(GpuRowsTest, GathersRowsOfATableOfSeveralParts) {
  const auto first = table_from(0, 4);
  const auto second = table_from(4, 3);
  const auto third = table_from(7, 2);
  GpuRows rows(0);
  const std::vector<GpuRows::Part> table{
      {bytes_of(first), 0, 4}, {bytes_of(second), 4, 3}, {bytes_of(third), 7, 2}};
  const std::vector<std::int64_t> ids{8, 4, 3, 0, 6, 7, 3};
  EXPECT_EQ(gather(rows, table, ids), rows_of(ids));
}

TEST_F(GpuRowsTest, ReusesItsBuffersForOtherSizes) {
  const auto first = table_from(0, 100);
  const auto second = table_from(100, 100);
  const std::vector<GpuRows::Part> one{{bytes_of(first), 0, 100}};
  const std::vector<GpuRows::Part> two{{bytes_of(first), 0, 100}, {bytes_of(second), 100, 100}};
  GpuRows rows(0);
  for (const std::size_t count : {3, 100, 1, 64}) {
    std::vector<std::int64_t> ids(count);
    std::iota(ids.rbegin(), ids.rend(), 0);
    EXPECT_EQ(gather(rows, one, ids), rows_of(ids)) << count;
    for (std::int64_t& id : ids) id += 90;
    EXPECT_EQ(gather(rows, two, ids), rows_of(ids)) << count;
  }
}

TEST_F(GpuRowsTest, CopiesBytesOfAShard) {
  const auto table = table_from(0, 5);
  const gpu::Values<float> out(0, 2 * kGpuRowFloats);
  GpuRows rows(0);
  rows.copy(*stream_, bytes_of(table) + kGpuRowBytes, 2 * kGpuRowBytes,
            reinterpret_cast<std::byte*>(out.data()));
  EXPECT_EQ(to_host(out), rows_of({1, 2}));
}

TEST_F(GpuRowsTest, TakesRowsInTheUploadedOrder) {
  const auto table = table_from(0, 30);
  const gpu::Values<float> out(0, 3 * kGpuRowFloats);
  GpuRows rows(0);
  std::vector<std::uint32_t> order(30);
  std::iota(order.rbegin(), order.rend(), 0U);
  rows.upload_order(*stream_, staging_, order);
  std::fill(order.begin(), order.end(), 99U);  // the caller may reuse it on return
  for (const std::uint64_t first : {0, 5, 27}) {
    rows.take(*stream_, {bytes_of(table), 0, 30}, kGpuRowBytes, first, 3,
              reinterpret_cast<std::byte*>(out.data()));
    const auto last = static_cast<std::int64_t>(29 - first);
    EXPECT_EQ(to_host(out), rows_of({last, last - 1, last - 2}));
  }
}

TEST_F(GpuRowsTest, ScratchGrowsAndNeverShrinks) {
  GpuRows rows(0);
  std::byte* const first = rows.scratch(1000);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(rows.scratch(10), first);
  EXPECT_EQ(rows.scratch(1000), first);
  EXPECT_NE(rows.scratch(1 << 20), nullptr);
}

}  // namespace
}  // namespace capstan::client
