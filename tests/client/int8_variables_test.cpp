// int8_variables_test.cpp -- reads and pushes of variables whose ps store int8 rows, on every path.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/client_fixture.hpp"
#include "protocol/int8_rows.hpp"

namespace capstan::client {
namespace {

class Int8VariablesTest : public ClientFixture {
 protected:
  static constexpr std::uint64_t kRows = 6001;
  static constexpr std::uint64_t kWidth = 37;

  protocol::VariableDescriptor create_int8(const Shape& shape, const std::string& name = "w",
                                           std::optional<DType> communication_dtype = {}) {
    return strategy_->variable_creator()
        .create(name, DType::float32, &shape, {},
                {.optimizer = optimizers::SGD{.learning_rate = -1},
                 .int8_rows = true,
                 .communication_dtype = communication_dtype})
        ->descriptor;
  }
  /// Mapped rings are exact.
  bool mapped() const { return GetParam().window == "auto"; }
};

// Long enough for several pieces and all shards. The rows are exact multiples of their steps.
TEST_P(Int8VariablesTest, EveryReadReturnsTheStoredRows) {
  start({.ranks = 4, .flags = {{"ps", "2"}}});
  const auto v = create_int8({kRows, kWidth});
  std::vector<float> all(kRows * kWidth);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t column = i % kWidth;
    all[i] = column == 0 ? 0 : column == 1 ? 255 : static_cast<float>(i * 31 % 256);
  }
  client().update(v, protocol::RowOp::set, 0, kRows, all.data());
  EXPECT_EQ(pull<float>(v), all);
  std::vector<std::int64_t> ids(9000);
  std::vector<float> expected;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<std::int64_t>(i * 7919 % kRows);
    const auto first = all.begin() + ids[i] * static_cast<std::int64_t>(kWidth);
    expected.insert(expected.end(), first, first + kWidth);
  }
  EXPECT_EQ(lookup<float>(v, ids), expected);
  std::vector<float> consistent(expected.size());
  client().lookup(v, ids, consistent.data(), ReadMode::consistent);
  EXPECT_EQ(consistent, expected);
  std::vector<float> part(3 * kWidth);
  client().pull(v, 2999, 3, part.data(), ReadMode::consistent);
  for (std::size_t i = 0; i < part.size(); ++i) ASSERT_EQ(part[i], all[2999 * kWidth + i]);
}

// The rows that lookups and pulls read are the same, although lookups receive 8-bit integers.
TEST_P(Int8VariablesTest, PushesAreRoundedOnce) {
  start({.ranks = 4, .flags = {{"ps", "2"}}});
  const auto v = create_int8({100, kWidth});
  std::vector<float> gradient(2 * kWidth);
  for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = std::sin(static_cast<float>(i) * 0.7F);
  push<float>(v, {4, 99}, gradient);
  client().flush();
  const std::vector<float> found = lookup<float>(v, {4, 99});
  for (std::size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], gradient[i], 2.0 / 510 * 1.001);
  EXPECT_NE(found, gradient);
  const std::vector<float> pulled = pull<float>(v);
  for (std::size_t j = 0; j < kWidth; ++j) ASSERT_EQ(pulled[4 * kWidth + j], found[j]);
}

// For four elements, a row of int8 has more bytes than one of bfloat16.
TEST_P(Int8VariablesTest, Bfloat16MessagesRoundGradientsOnly) {
  start({.ranks = 4, .flags = {{"ps", "2"}}});
  for (const std::size_t width : {4, 8, 64}) {
    SCOPED_TRACE(width);
    const auto v =
        create_int8({9, static_cast<std::int64_t>(width)}, "w" + std::to_string(width), DType::bfloat16);
    std::vector<float> values(9 * width);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
    client().update(v, protocol::RowOp::set, 0, 9, values.data());
    std::vector<std::byte> converted(9 * protocol::int8_row_bytes(width));
    protocol::to_int8_rows(values, width, converted.data());
    std::vector<float> stored(values.size());
    protocol::from_int8_rows(converted, width, stored.data());
    EXPECT_EQ(pull<float>(v), stored);
    EXPECT_EQ(lookup<float>(v, {0, 1, 2, 3, 4, 5, 6, 7, 8}), stored);
    std::vector<float> consistent(values.size());
    client().pull(v, 0, 9, consistent.data(), ReadMode::consistent);
    EXPECT_EQ(consistent, stored);

    client().update(v, protocol::RowOp::set, 0, 9, std::vector<float>(values.size()).data());
    constexpr float kGradient = 1 + 0x1p-10F;  // the maximum of its row, and exact as such
    std::vector<float> gradient(width);
    gradient[0] = kGradient;
    push<float>(v, {7}, gradient);
    client().flush();
    EXPECT_EQ(lookup<float>(v, {7})[0], mapped() ? kGradient : 1);
  }
}

TEST_P(Int8VariablesTest, CannotBeMapped) {
  start({.ranks = 4, .flags = {{"ps", "2"}}}, 1);
  const auto v = create_int8({10, 8});
  EXPECT_THAT(error_of(Code::failed_precondition, [&] { (void)client().mapped(v); }),
              testing::HasSubstr("stores int8 rows"));
}

INSTANTIATE_TEST_SUITE_P(Paths, Int8VariablesTest,
                         testing::Values(PathParam{Network::loop, "auto"}, PathParam{Network::loop, "rma"},
                                         PathParam{Network::loop, "am"}, PathParam{Network::ucx, "am"}),
                         path_name);

}  // namespace
}  // namespace capstan::client
