// push_rows_test.cpp -- the bodies and headers of the entries of a push.
#include "client/channel/push_rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "capstan/dtype.hpp"
#include "support/expect_error.hpp"
#include "transport/fabric.hpp"

namespace capstan::client {
namespace {

constexpr std::size_t kRowFloats = 3;
constexpr std::uint64_t kFloatRowBytes = kRowFloats * sizeof(float);

/// Gradient rows {0, 1, 2}, {10, 11, 12}, ...
std::vector<float> numbered_rows(std::size_t rows) {
  std::vector<float> values;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t i = 0; i < kRowFloats; ++i) values.push_back(static_cast<float>(10 * row + i));
  }
  return values;
}

PushRows push_of(const std::vector<float>& gradient) {
  PushRows push;
  push.variable = 4;
  push.shard = 2;
  push.row_bytes = kFloatRowBytes;
  push.count = gradient.size() / kRowFloats;
  push.gradient = reinterpret_cast<const std::byte*>(gradient.data());
  return push;
}

/// First elements of the rows that copy_rows() copies.
std::vector<float> first_of_copied(const PushRows& push, std::uint64_t first, std::uint64_t count) {
  std::vector<float> copied((count + 1) * kRowFloats, -1);
  copy_rows(push, first, count, reinterpret_cast<std::byte*>(copied.data()), 0);
  EXPECT_EQ(copied[count * kRowFloats], -1) << "copied an additional row";
  std::vector<float> out;
  for (std::size_t row = 0; row < count; ++row) {
    EXPECT_EQ(copied[row * kRowFloats + 2], copied[row * kRowFloats] + 2) << "copied an incomplete row";
    out.push_back(copied[row * kRowFloats]);
  }
  return out;
}

std::vector<std::uint32_t> copied_numbers(const PushRows& push, std::uint64_t first, std::uint64_t count) {
  std::vector<std::uint32_t> numbers(count);
  copy_numbers(push, first, count, numbers.data());
  return numbers;
}

TEST(PushRows, CopiesConsecutiveRowsWithoutAnOrder) {
  const auto gradient = numbered_rows(5);
  EXPECT_EQ(first_of_copied(push_of(gradient), 1, 3), (std::vector<float>{10, 20, 30}));
}

TEST(PushRows, CopiesRowsInTheOrderOfThePush) {
  const auto gradient = numbered_rows(5);
  const std::vector<std::uint32_t> order{4, 0, 3, 3};
  PushRows push = push_of(gradient);
  push.order = order;
  push.count = order.size();
  EXPECT_EQ(first_of_copied(push, 0, 4), (std::vector<float>{40, 0, 30, 30}));
  EXPECT_EQ(first_of_copied(push, 1, 2), (std::vector<float>{0, 30}));
}

TEST(PushRows, RowNumbersComeFromRowsOrIdsMinusFirstRow) {
  const auto gradient = numbered_rows(3);
  const std::vector<std::uint32_t> rows{7, 1, 9};
  const std::vector<std::int64_t> ids{5'000'000'007, 5'000'000'001, 5'000'000'009};
  PushRows by_rows = push_of(gradient);
  by_rows.rows = rows;
  PushRows by_ids = push_of(gradient);
  by_ids.ids = ids;
  by_ids.first_row = 5'000'000'000;
  for (const PushRows& push : {by_rows, by_ids}) {
    EXPECT_EQ(push.kind(), protocol::PushKind::sparse);
    EXPECT_EQ(copied_numbers(push, 0, 3), rows);
    EXPECT_EQ(copied_numbers(push, 1, 2), (std::vector<std::uint32_t>{1, 9}));
  }
}

TEST(PushRows, AllNumbersCopiesOnlyComputedNumbers) {
  const auto gradient = numbered_rows(3);
  const std::vector<std::uint32_t> rows{7, 1, 9};
  const std::vector<std::int64_t> ids{107, 101, 109};
  PushRows push = push_of(gradient);
  std::vector<std::uint32_t> memory;
  EXPECT_TRUE(all_numbers(push, memory).empty()) << "a dense push has no row numbers";
  push.rows = rows;
  EXPECT_EQ(all_numbers(push, memory).data(), rows.data());
  EXPECT_TRUE(memory.empty());
  push.rows = {};
  push.ids = ids;
  push.first_row = 100;
  const auto computed = all_numbers(push, memory);
  EXPECT_EQ(computed.data(), memory.data());
  EXPECT_EQ(std::vector(computed.begin(), computed.end()), rows);
}

TEST(PushRows, SparseBodyIsPaddedRowNumbersThenRows) {
  const auto gradient = numbered_rows(20);
  std::vector<std::uint32_t> rows(20);
  std::iota(rows.begin(), rows.end(), 100U);
  PushRows push = push_of(gradient);
  push.rows = rows;
  for (const std::uint64_t count : {1, 16, 17}) {
    const std::uint64_t bytes = protocol::entry_bytes(protocol::PushKind::sparse, count, kFloatRowBytes) -
                                sizeof(protocol::PushHeader);
    std::vector<std::byte> body(bytes);
    copy_body(push, 2, count, body.data(), 0);
    const std::uint64_t values = protocol::number_bytes(protocol::PushKind::sparse, count);
    EXPECT_EQ(std::memcmp(body.data(), &rows[2], count * sizeof rows[0]), 0) << count;
    EXPECT_EQ(std::memcmp(body.data() + values, &gradient[2 * kRowFloats], count * kFloatRowBytes), 0)
        << count;
  }
}

TEST(PushRows, DenseBodyIsItsRows) {
  const auto gradient = numbered_rows(4);
  std::vector<std::byte> body(2 * kFloatRowBytes);
  copy_body(push_of(gradient), 1, 2, body.data(), 0);
  EXPECT_EQ(std::memcmp(body.data(), &gradient[kRowFloats], body.size()), 0);
}

TEST(PushRows, StreamedBodiesEqualCopiedOnes) {
  constexpr std::size_t kRows = 40;
  const std::vector<std::uint32_t> numbers = {5, 9, 2, 30, 31, 6};
  const std::vector<std::int64_t> keys = {500, -9, 2, 30, 31, 6};
  const std::vector<std::uint32_t> order = {39, 0, 7, 7, 20, 1};
  constexpr std::uint64_t kFirst = 1;
  for (const std::uint64_t row_bytes : {12, 64, 200, 256, 5000}) {
    std::vector<float> gradient(kRows * row_bytes / sizeof(float));
    std::iota(gradient.begin(), gradient.end(), 0.0F);
    PushRows dense;
    dense.row_bytes = row_bytes;
    dense.gradient = reinterpret_cast<const std::byte*>(gradient.data());
    dense.count = kRows;
    PushRows sparse = dense;
    sparse.rows = numbers;
    sparse.count = numbers.size();
    PushRows ordered = sparse;
    ordered.order = order;
    PushRows keyed = dense;
    keyed.keys = keys;
    keyed.order = order;
    keyed.count = keys.size();
    int number = 0;
    for (const PushRows& push : {dense, sparse, ordered, keyed}) {
      const std::uint64_t count = push.count - kFirst;
      const std::uint64_t bytes = protocol::entry_bytes(push.kind(), count, push.value_bytes());
      std::vector<std::byte> memory(bytes + 64);
      void* at = memory.data();
      std::size_t capacity = memory.size();
      auto* const body = static_cast<std::byte*>(std::align(64, bytes, at, capacity));
      stream_body(push, kFirst, count, body);
      std::vector<std::byte> copied(bytes);
      copy_body(push, kFirst, count, copied.data(), 0);
      EXPECT_TRUE(std::equal(copied.begin(), copied.end(), body)) << row_bytes << ", push " << number;
      ++number;
    }
  }
}

TEST(PushRows, DenseHeaderHasRowsAndPartFlags) {
  const auto gradient = numbered_rows(10);
  PushRows push = push_of(gradient);
  push.first_row = 50;
  push.op = protocol::RowOp::add;
  const auto header = header_of(push, 4, 3, 6);
  EXPECT_EQ(header.kind, protocol::PushKind::dense);
  EXPECT_EQ(header.variable, 4U);
  EXPECT_EQ(header.shard, 2U);
  EXPECT_EQ(header.rank, 6U);
  EXPECT_EQ(header.rows, 3U);
  EXPECT_EQ(header.first_row, 54U);
  EXPECT_EQ(header.op, protocol::RowOp::add);
  EXPECT_EQ(header.bytes, 64U + 64U);

  const auto parts = [&](std::uint64_t first, std::uint64_t count) {
    const auto of = header_of(push, first, count, 6);
    return std::pair<int, int>(of.first_part, of.last_part);
  };
  EXPECT_EQ(parts(0, 10), std::pair(1, 1));
  EXPECT_EQ(parts(0, 9), std::pair(1, 0));
  EXPECT_EQ(parts(4, 3), std::pair(0, 0));
  EXPECT_EQ(parts(9, 1), std::pair(0, 1));
}

TEST(PushRows, SparseHeaderCountsTheBytesOfRowNumbers) {
  const auto gradient = numbered_rows(17);
  const std::vector<std::uint32_t> rows(17, 3);
  const std::vector<std::int64_t> ids(17, 53);
  PushRows by_rows = push_of(gradient);
  by_rows.rows = rows;
  PushRows by_ids = push_of(gradient);
  by_ids.ids = ids;
  by_ids.first_row = 50;
  for (const PushRows& push : {by_rows, by_ids}) {
    const auto header = header_of(push, 0, 17, 0);
    EXPECT_EQ(header.kind, protocol::PushKind::sparse);
    EXPECT_EQ(header.first_row, 0U) << "ids are already numbers within the shard";
    EXPECT_EQ(header.bytes, 64U + 128U + 256U);  // 17 numbers, 17 rows of 12 bytes
  }
}

TEST(PushRows, EntriesFitAQuarterOfTheRingAndOneMessage) {
  const std::vector<std::uint32_t> rows(1);
  for (const bool sparse : {false, true}) {
    for (const std::uint64_t row_bytes : {4, 12, 64, 100, 4096}) {
      for (const std::uint64_t ring_bytes :
           {std::uint64_t{1} << 15, std::uint64_t{1} << 17, std::uint64_t{1} << 24}) {
        PushRows push;
        push.row_bytes = row_bytes;
        if (sparse) push.rows = rows;
        const std::uint64_t max_bytes = std::min<std::uint64_t>(ring_bytes / 4, transport::kPieceBytes);
        const std::uint64_t count = rows_an_entry(push, ring_bytes);
        EXPECT_LE(header_of(push, 0, count, 0).bytes, max_bytes) << row_bytes << ' ' << ring_bytes;
        // The entries are not needlessly small: one with 1.5 times as many rows would be too large.
        EXPECT_GT(header_of(push, 0, count + count / 2 + 1, 0).bytes, max_bytes - 3 * protocol::kCacheLine)
            << row_bytes << ' ' << ring_bytes;
      }
    }
  }
}

TEST(PushRows, EntryHasOneRowIfARowExceedsAMessage) {
  PushRows push;
  push.row_bytes = 2 * transport::kPieceBytes;
  EXPECT_EQ(rows_an_entry(push, 16 * push.row_bytes), 1U);
}

TEST(PushRows, RejectsARowThatDoesNotFitHalfOfTheRing) {
  PushRows push;
  push.row_bytes = 4096;
  EXPECT_EQ(rows_an_entry(push, 2 * (4096 + 64)), 1U);
  const std::string error =
      error_of(Code::resource_exhausted, [&] { rows_an_entry(push, 2 * (4096 + 64) - 2); });
  for (const char* parameter : {"4096", "8318", "--push-ring-bytes"}) {
    EXPECT_NE(error.find(parameter), std::string::npos) << error;
  }
}

TEST(PushRows, Bfloat16HalvesTheValuesButNotTheRowsOfAnEntry) {
  const auto gradient = numbered_rows(5);
  PushRows exact = push_of(gradient);
  PushRows narrow = exact;
  narrow.bfloat16 = true;
  EXPECT_EQ(rows_an_entry(narrow, 4096), rows_an_entry(exact, 4096));
  const protocol::PushHeader header = header_of(narrow, 0, 5, 1);
  EXPECT_EQ(header.bfloat16_values, 1);
  EXPECT_EQ(header.bytes, protocol::entry_bytes(header.kind, 5, kFloatRowBytes / 2));

  const std::vector<std::uint32_t> order{4, 0, 2};
  narrow.order = order;
  std::vector<bfloat16> copied(2 * kRowFloats + 1, bfloat16(-1));
  copy_rows(narrow, 1, 2, reinterpret_cast<std::byte*>(copied.data()), 0);
  const std::vector<bfloat16> expected{bfloat16(0),  bfloat16(1),  bfloat16(2), bfloat16(20),
                                       bfloat16(21), bfloat16(22), bfloat16(-1)};
  EXPECT_EQ(copied, expected);

  narrow.op = protocol::RowOp::erase;
  EXPECT_EQ(narrow.value_bytes(), 0U);
}

TEST(PushRows, RoundingSeedNamesThePush) {
  protocol::PushHeader in_closure;
  in_closure.closure = 3;
  in_closure.call = 1;
  in_closure.variable = 4;
  PushRows push;
  push.stochastic_rounding = true;
  EXPECT_EQ(rounding_seed(push, in_closure), 0U) << "an exact push has no seed";
  push.bfloat16 = true;
  std::set<std::uint64_t> seeds{rounding_seed(push, in_closure)};
  const auto changed = [&](auto member, auto value) {
    protocol::PushHeader header = in_closure;
    header.*member = value;
    return rounding_seed(push, header);
  };
  using Header = protocol::PushHeader;
  seeds.insert(changed(&Header::closure, std::uint64_t{4}));
  seeds.insert(changed(&Header::call, std::uint32_t{2}));
  seeds.insert(changed(&Header::variable, std::uint32_t{5}));
  seeds.insert(changed(&Header::shard, std::uint32_t{1}));
  seeds.insert(changed(&Header::replica, std::uint16_t{1}));
  EXPECT_EQ(seeds.size(), 6U);
  // Another worker may run the closure again.
  EXPECT_EQ(changed(&Header::rank, std::uint32_t{7}), rounding_seed(push, in_closure));
  in_closure.closure = 0;
  EXPECT_NE(changed(&Header::rank, std::uint32_t{7}), rounding_seed(push, in_closure));
}

TEST(PushRows, StochasticRoundingDiffersBetweenRowsAndEntries) {
  const std::vector<float> gradient(8 * kRowFloats * 10, 1.0F + 0x1p-8F);
  PushRows push = push_of(gradient);
  push.bfloat16 = true;
  push.stochastic_rounding = true;
  const auto copied = [&](std::uint64_t first, std::uint64_t count, std::uint64_t seed) {
    std::vector<bfloat16> out(count * kRowFloats);
    copy_rows(push, first, count, reinterpret_cast<std::byte*>(out.data()), seed);
    return out;
  };
  EXPECT_EQ(copied(0, 40, 1), copied(0, 40, 1));
  EXPECT_NE(copied(0, 40, 1), copied(0, 40, 2));
  EXPECT_NE(copied(0, 40, 1), copied(40, 40, 1)) << "the entries of a push must differ";
  // All rows are the same one, and are copied one by one.
  const std::vector<std::uint32_t> order(80, 0);
  push.order = order;
  const std::vector<bfloat16> rows = copied(0, 80, 1);
  std::size_t away = 0;  // of the first elements
  for (std::size_t i = 0; i < rows.size(); i += kRowFloats) away += rows[i] == bfloat16(1) ? 0 : 1;
  EXPECT_NEAR(static_cast<double>(away), 40, 6 * std::sqrt(80 * 0.25));
}

}  // namespace
}  // namespace capstan::client
