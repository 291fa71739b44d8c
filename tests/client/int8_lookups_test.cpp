// int8_lookups_test.cpp -- variables whose lookups through a network read 8-bit integers, on every path.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "client/client_fixture.hpp"

namespace capstan::client {
namespace {

using Int8Ids = std::vector<std::int64_t>;

class Int8LookupsTest : public ClientFixture {
 protected:
  static constexpr std::uint64_t kRows = 6001;
  static constexpr std::uint64_t kWidth = 37;

  void start_small() { start({.ranks = 4, .flags = {{"ps", "2"}}}); }
  protocol::VariableDescriptor create_with(const Shape& shape, const VariableOptions& options) {
    return strategy_->variable_creator().create("w", DType::float32, &shape, {}, options)->descriptor;
  }
  static VariableOptions int8_options() {
    return {.optimizer = optimizers::SGD{.learning_rate = -1}, .int8_lookups = true};
  }
  /// Mapped memory is exact.
  bool mapped() const { return GetParam().window == "auto"; }

  /// Sets all rows to different values with the least range in row 0, and returns them.
  std::vector<float> fill(const protocol::VariableDescriptor& v) {
    std::vector<float> values(v.rows() * v.width());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto row = static_cast<float>(i / v.width());
      values[i] = std::sin(static_cast<float>(i) * 0.7F) * (1 + row) - row / 3;
    }
    client().update(v, protocol::RowOp::set, 0, v.rows(), values.data());
    return values;
  }
  /// Expects rows of `all` within half a step, but rounded, if they crossed a network.
  void expect_rows(const std::vector<float>& all, const Int8Ids& ids, const std::vector<float>& found,
                   std::uint64_t width) {
    ASSERT_EQ(found.size(), ids.size() * width);
    std::uint64_t different = 0;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const float* const exact = all.data() + static_cast<std::uint64_t>(ids[i]) * width;
      const auto [low, high] = std::minmax_element(exact, exact + width);
      const float bound = (*high - *low) / 510 * 1.001F;
      for (std::uint64_t j = 0; j < width; ++j) {
        const float error = std::abs(found[i * width + j] - exact[j]);
        ASSERT_LE(error, mapped() ? 0 : bound) << "row " << ids[i] << ", element " << j;
        if (error != 0) ++different;
      }
    }
    if (!mapped()) {
      EXPECT_GT(different, ids.size() * width / 2) << "the rows were not rounded";
    }
  }
};

TEST_P(Int8LookupsTest, RowsAreRoundedToHalfAStep) {
  start_small();
  const auto v = create_with({kRows, kWidth}, int8_options());
  ASSERT_EQ(v.shards.size(), 3U);
  const std::vector<float> all = fill(v);
  // Long enough for several pieces; unsorted, with duplicates and all shards.
  Int8Ids many(9000);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<std::int64_t>(i * 7919 % kRows);
  for (const Int8Ids& ids : {many, Int8Ids{6000, 0, 2000, 2001, 4000, 4001, 2000}, Int8Ids{5}}) {
    const std::vector<float> relaxed = lookup<float>(v, ids);
    expect_rows(all, ids, relaxed, kWidth);
    std::vector<float> consistent(relaxed.size());
    client().lookup(v, ids, consistent.data(), ReadMode::consistent);
    EXPECT_EQ(consistent, relaxed);
  }
}

TEST_P(Int8LookupsTest, PullsPushesAndAssignmentsAreExact) {
  start_small();
  const auto v = create_with({kRows, kWidth}, int8_options());
  std::vector<float> all = fill(v);
  EXPECT_EQ(pull<float>(v), all);
  std::vector<float> gradient(kWidth);
  for (std::uint64_t j = 0; j < kWidth; ++j)
    all[4 * kWidth + j] += gradient[j] = 1.0F / static_cast<float>(3 + j);
  push<float>(v, {4}, gradient);
  client().flush();
  EXPECT_EQ(pull<float>(v), all);
}

TEST_P(Int8LookupsTest, PullsKeepTheCommunicationDtype) {
  start_small();
  VariableOptions options = int8_options();
  options.communication_dtype = DType::bfloat16;
  const auto v = create_with({kRows, kWidth}, options);
  std::vector<float> all = fill(v);
  const Int8Ids ids{3, 5999, 2500};
  expect_rows(all, ids, lookup<float>(v, ids), kWidth);
  if (GetParam().window == "am") {
    for (float& value : all) value = static_cast<float>(bfloat16(value));
  }
  EXPECT_EQ(pull<float>(v), all);
}

// A row of two elements takes 8 bytes, and 10 as 8-bit integers.
TEST_P(Int8LookupsTest, RowsThatWouldNotBeSmallerAreNotConverted) {
  start_small();
  VariableOptions options = int8_options();
  const auto plain = create_with({10, 2}, options);
  std::vector<float> all = fill(plain);
  EXPECT_EQ(lookup<float>(plain, {7, 1}), (std::vector<float>{all[14], all[15], all[2], all[3]}));

  const Shape shape{2, 8};
  options.communication_dtype = DType::bfloat16;
  const auto narrow =
      strategy_->variable_creator().create("narrow", DType::float32, &shape, {}, options)->descriptor;
  all = fill(narrow);
  all.erase(all.begin(), all.begin() + 8);
  if (!mapped()) {
    for (float& value : all) value = static_cast<float>(bfloat16(value));
  }
  EXPECT_EQ(lookup<float>(narrow, {1}), all);
}

TEST_P(Int8LookupsTest, RowsOfOneValueAreExactAndOthersMayBeNan) {
  start_small();
  const auto v = create_with({3, 4}, int8_options());
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> values{0.1F, 0.1F, 0.1F, 0.1F, 1, infinity, 2, 3, 5, 6, 7, 8};
  client().update(v, protocol::RowOp::set, 0, 3, values.data());
  const std::vector<float> found = lookup<float>(v, {0, 1});
  EXPECT_EQ(std::vector<float>(found.begin(), found.begin() + 4), std::vector<float>(4, 0.1F));
  for (std::size_t i = 4; i < 8; ++i) {
    if (mapped()) {
      EXPECT_EQ(found[i], values[i]);
    } else {
      EXPECT_TRUE(std::isnan(found[i])) << found[i];
    }
  }
}

TEST_P(Int8LookupsTest, TablesReadAlike) {
  start_small();
  const auto table =
      strategy_->variable_creator()
          .create_table(
              "t", DType::float32, kWidth, {},
              {.optimizer = optimizers::SGD{.learning_rate = -1}, .max_keys = 1 << 12, .int8_lookups = true})
          ->descriptor;
  std::vector<float> values(2 * kWidth);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
  push<float>(table, {-5, 77}, values);
  client().flush();
  const std::vector<float> found = lookup<float>(table, {77, 6, -5});
  EXPECT_EQ(std::vector<float>(found.begin() + kWidth, found.begin() + 2 * kWidth),
            std::vector<float>(kWidth, 0));
  std::vector<float> present(found.begin(), found.begin() + kWidth);
  present.insert(present.end(), found.begin() + 2 * kWidth, found.end());
  expect_rows(values, {1, 0}, present, kWidth);
  std::vector<float> row(kWidth);
  client().lookup_or_insert(table, Int8Ids{-5}, row.data());
  EXPECT_EQ(row, std::vector<float>(found.begin() + 2 * kWidth, found.end()));
}

TEST_P(Int8LookupsTest, StrategyHasADefaultForFloats) {
  ranks_ = std::make_unique<RankThreads>(RankThreadsOptions{.ranks = 3, .network = GetParam().network});
  strategy_ = std::make_unique<strategy::Strategy>(ranks_->cluster().runtime(),
                                                   StrategyOptions{.int8_lookups = true});
  const Shape shape{2};
  const auto create_as = [&](const std::string& name, DType dtype, const VariableOptions& options) {
    return strategy_->variable_creator().create(name, dtype, &shape, {}, options)->descriptor;
  };
  EXPECT_TRUE(create_as("a", DType::float32, {}).communication.int8_lookups);
  EXPECT_FALSE(create_as("b", DType::float32, {.int8_lookups = false}).communication.int8_lookups);
  EXPECT_FALSE(create_as("c", DType::float64, {}).communication.int8_lookups);
  const auto create_table = [&](const std::string& name, DType dtype) {
    return strategy_->variable_creator().create_table(name, dtype, 2, {}, {.max_keys = 100})->descriptor;
  };
  EXPECT_TRUE(create_table("d", DType::float32).communication.int8_lookups);
  EXPECT_FALSE(create_table("e", DType::int32).communication.int8_lookups);
}

TEST_P(Int8LookupsTest, OtherDtypesAreRejected) {
  start_small();
  const Shape shape{2};
  for (const DType dtype : {DType::float64, DType::int32, DType::float16, DType::bfloat16}) {
    const std::string error = error_of(Code::invalid_argument, [&] {
      (void)strategy_->variable_creator().create("v", dtype, &shape, {}, {.int8_lookups = true});
    });
    for (const std::string& parameter : {std::string("int8_lookups"), std::string(to_string(dtype))})
      EXPECT_NE(error.find(parameter), std::string::npos) << error;
    EXPECT_NO_THROW((void)strategy_->variable_creator().create("v" + std::string(to_string(dtype)), dtype,
                                                               &shape, {}, {.int8_lookups = false}));
  }
  error_of(Code::invalid_argument, [&] {
    (void)strategy_->variable_creator().create_table("t", DType::float64, 2, {}, {.int8_lookups = true});
  });
}

INSTANTIATE_TEST_SUITE_P(Paths, Int8LookupsTest,
                         testing::Values(PathParam{Network::loop, "auto"}, PathParam{Network::loop, "rma"},
                                         PathParam{Network::loop, "am"}, PathParam{Network::ucx, "am"}),
                         path_name);

}  // namespace
}  // namespace capstan::client
