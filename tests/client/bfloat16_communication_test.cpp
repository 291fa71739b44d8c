// bfloat16_communication_test.cpp -- variables whose messages carry bfloat16: the rounded values, on every
// path.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "client/client_fixture.hpp"
#include "protocol/table_layout.hpp"

namespace capstan::client {
namespace {

using Ids = std::vector<std::int64_t>;

float rounded(float value) { return static_cast<float>(bfloat16(value)); }
std::vector<float> rounded(std::vector<float> values) {
  for (float& value : values) value = rounded(value);
  return values;
}

class Bfloat16CommunicationTest : public ClientFixture {
 protected:
  void start_small() {
    // Small rings, which wrap around often.
    start({.ranks = 4, .flags = {{"ps", "2"}, {"push-ring-bytes", "64KiB"}}});
  }
  protocol::VariableDescriptor create_narrow(const std::string& name, const Shape& shape) {
    return strategy_->variable_creator()
        .create(name, DType::float32, &shape, {},
                {.optimizer = optimizers::SGD{.learning_rate = -1}, .communication_dtype = DType::bfloat16})
        ->descriptor;
  }
  /// Mapped memory is exact in both directions.
  bool mapped() const { return GetParam().window == "auto"; }
  /// Returns the value of a gradient that a ps gets, or of a row that a read returns.
  float as_sent(float value) const { return mapped() ? value : rounded(value); }
  std::vector<float> as_sent(const std::vector<float>& values) const {
    return mapped() ? values : rounded(values);
  }
};

// The sums of rounded gradients have more bits than bfloat16, so that rounded sums would differ.
TEST_P(Bfloat16CommunicationTest, GradientsAreRoundedAndSumsAreNot) {
  start_small();
  constexpr std::uint64_t kRows = 6001;
  constexpr std::uint64_t kWidth = 7;
  const auto v = create_narrow("w", {kRows, kWidth});
  ASSERT_EQ(v.shards.size(), 3U);
  std::vector<float> plain(kRows * kWidth);
  std::mt19937 random(5);
  const auto next = [&] { return static_cast<float>(random() % 10'000) / 64; };
  for (int round = 0; round < 20; ++round) {
    if (round % 5 == 4) {
      std::vector<float> gradient(plain.size());
      for (std::size_t i = 0; i < plain.size(); ++i) plain[i] += as_sent(gradient[i] = next());
      client().push_dense(v, gradient.data());
    } else {
      Ids ids(random() % 9000);  // several entries, of about 500 rows; some are duplicates
      for (auto& id : ids) id = static_cast<std::int64_t>(random() % kRows);
      std::vector<float> gradient(ids.size() * kWidth);
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        gradient[i] = next();
        plain[static_cast<std::uint64_t>(ids[i / kWidth]) * kWidth + i % kWidth] += as_sent(gradient[i]);
      }
      push(v, ids, gradient);
    }
    client().flush();
    const Ids some{6000, 0, 2000, 2001, 4000, 4001, 2000};
    std::vector<float> expected;
    for (const std::int64_t id : some) {
      for (std::uint64_t j = 0; j < kWidth; ++j)
        expected.push_back(plain[static_cast<std::uint64_t>(id) * kWidth + j]);
    }
    ASSERT_EQ(lookup<float>(v, some), as_sent(expected)) << "round " << round;
  }
  EXPECT_NE(plain, rounded(plain));
  // Dense pulls by RMA read the memory of the ps.
  const std::vector<float> all = pull<float>(v);
  EXPECT_EQ(all, GetParam().window == "rma" ? plain : as_sent(plain));
}

TEST_P(Bfloat16CommunicationTest, ConsistentReadsEqualRelaxedOnes) {
  start_small();
  const auto v = create_narrow("w", {20'000, 3});
  const bool exact_pulls = GetParam().window != "am";
  std::vector<float> values(20'000 * 3);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  client().update(v, protocol::RowOp::set, 0, 20'000, values.data());
  std::vector<float> out(values.size());
  client().pull(v, 1, 19'999, out.data(), ReadMode::consistent);
  out.resize(19'999 * 3);
  const std::vector<float> wanted(values.begin() + 3, values.end());
  EXPECT_EQ(out, exact_pulls ? wanted : rounded(wanted));
  std::vector<float> relaxed(out.size());
  client().pull(v, 1, 19'999, relaxed.data());
  EXPECT_EQ(relaxed, out);
  const Ids ids{19'999, 5, 7777};
  out.resize(9);
  client().lookup(v, ids, out.data(), ReadMode::consistent);
  EXPECT_EQ(lookup<float>(v, ids), out);
  EXPECT_EQ(out, as_sent({59'997, 59'998, 59'999, 15, 16, 17, 23'331, 23'332, 23'333}));
}

TEST_P(Bfloat16CommunicationTest, AssignmentsAreExact) {
  start_small();
  const auto v = create_narrow("w", {4});
  const float exact = 1.0F + 0x1p-20F;
  const std::vector<float> values{exact, 0, 0, 0};
  client().update(v, protocol::RowOp::set, 0, 4, values.data());
  // Adds the exact value a second time; a rounded one would make it 2.
  client().scatter(v, protocol::RowOp::add, Ids{0}, &exact);
  const std::vector<float> minus{-2, 0, 0, 0};
  push(v, {0, 1, 2, 3}, minus);
  client().flush();
  EXPECT_EQ(lookup<float>(v, {0}), std::vector<float>{0x1p-19F});
}

// Sums of combined gradients are exact, and rounded once when they are sent.
TEST_P(Bfloat16CommunicationTest, SumsOfGradientsAreRoundedOnce) {
  start_small();
  const Shape shape{2};
  const auto v = strategy_->variable_creator()
                     .create("w", DType::float32, &shape, {},
                             {.optimizer = optimizers::SGD{.learning_rate = -1},
                              .combine_pushes = CombinePushes{.rows = 2, .pushes = 8},
                              .communication_dtype = DType::bfloat16})
                     ->descriptor;
  client().begin({.id = 5});
  push<float>(v, {1}, {0});  // the first gradient of a row is not summed
  for (const float value : {256.0F, 1.0F, 2.0F}) push<float>(v, {1}, {value});
  client().flush();  // sends 259, which is rounded to 260
  push<float>(v, {1}, {-256});
  client().flush();
  client().begin({});
  EXPECT_EQ(lookup<float>(v, {1}), std::vector<float>{mapped() ? 3.0F : 4.0F});
}

TEST_P(Bfloat16CommunicationTest, StochasticRoundingKeepsTheMeanOfGradients) {
  start_small();
  constexpr std::uint64_t kElements = 60;
  constexpr int kPushes = 200;
  constexpr double kShare = 0.25;  // of the distance between 1 and the next number
  constexpr float kGap = 0x1p-7F;  // this distance
  constexpr float kValue = 1 + kGap / 4;
  const auto mean_of = [&](const std::string& name, bool stochastic_rounding) {
    const Shape shape{12, kElements / 12};
    const auto v = strategy_->variable_creator()
                       .create(name, DType::float32, &shape, {},
                               {.optimizer = optimizers::SGD{.learning_rate = -1},
                                .stochastic_rounding = stochastic_rounding,
                                .communication_dtype = DType::bfloat16})
                       ->descriptor;
    const std::vector<float> gradient(kElements, kValue);
    const Ids all{11, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10};  // not in the order of the shards
    for (int i = 0; i < kPushes; ++i) {
      if (i % 2 == 0) {
        client().push_dense(v, gradient.data());
      } else {
        push(v, all, gradient);
      }
    }
    client().flush();
    // Rows may be read as bfloat16, which holds the sums of the fractions exactly.
    const std::vector<float> ones(kElements, -static_cast<float>(kPushes));
    client().update(v, protocol::RowOp::add, 0, v.rows(), ones.data());
    double total = 0;
    for (const float sum : pull<float>(v)) {
      const double gaps = static_cast<double>(sum) / kGap;
      total += gaps;
      if (stochastic_rounding && !mapped()) {
        // Pushes that used the same random bits would round all gradients of an element alike.
        EXPECT_NEAR(gaps, kPushes * kShare, 6 * std::sqrt(kPushes * kShare * (1 - kShare)));
      }
    }
    return total / (kPushes * kElements);
  };
  const double bound = 6 * std::sqrt(kShare * (1 - kShare) / (kPushes * kElements));
  EXPECT_NEAR(mean_of("stochastic", true), kShare, mapped() ? 0 : bound);
  EXPECT_EQ(mean_of("nearest", false), mapped() ? kShare : 0);
}

TEST_P(Bfloat16CommunicationTest, StochasticRoundingKeepsTheMeanOfGradientsOfATable) {
  start_small();
  constexpr int kKeys = 100;
  constexpr int kPushes = 100;
  constexpr float kValue = 1 + 0x1p-9F;  // a quarter of the distance between 1 and the next number
  const auto table = strategy_->variable_creator()
                         .create_table("t", DType::float32, 1, {},
                                       {.optimizer = optimizers::SGD{.learning_rate = -1},
                                        .max_keys = 1000,
                                        .stochastic_rounding = true,
                                        .communication_dtype = DType::bfloat16})
                         ->descriptor;
  Ids keys(kKeys);
  std::iota(keys.begin(), keys.end(), -5);
  for (int i = 0; i < kPushes; ++i) push(table, keys, std::vector<float>(kKeys, kValue));
  push(table, keys, std::vector<float>(kKeys, -kPushes));
  client().flush();
  double gaps = 0;
  for (const float sum : lookup<float>(table, keys)) gaps += static_cast<double>(sum) / 0x1p-7;
  const double share = gaps / (kPushes * kKeys);
  EXPECT_NEAR(share, 0.25, mapped() ? 0 : 6 * std::sqrt(0.25 * 0.75 / (kPushes * kKeys)));
}

TEST_P(Bfloat16CommunicationTest, StochasticRoundingKeepsValuesThatAreNotFinite) {
  start_small();
  const Shape shape{4};
  const auto v = strategy_->variable_creator()
                     .create("w", DType::float32, &shape, {},
                             {.optimizer = optimizers::SGD{.learning_rate = -1},
                              .stochastic_rounding = true,
                              .communication_dtype = DType::bfloat16})
                     ->descriptor;
  const float infinity = std::numeric_limits<float>::infinity();
  push<float>(v, {0, 1, 2, 3}, {infinity, -infinity, std::numeric_limits<float>::quiet_NaN(), 2});
  client().flush();
  const std::vector<float> found = pull<float>(v);
  EXPECT_EQ(found[0], infinity);
  EXPECT_EQ(found[1], -infinity);
  EXPECT_TRUE(std::isnan(found[2]));
  EXPECT_EQ(found[3], 2);
}

TEST_P(Bfloat16CommunicationTest, StochasticRoundingNeedsBfloat16) {
  start_small();
  const Shape shape{2};
  const auto create_as = [&](const std::string& name, DType dtype, std::optional<DType> communication) {
    return strategy_->variable_creator()
        .create(name, dtype, &shape, {}, {.stochastic_rounding = true, .communication_dtype = communication})
        ->descriptor;
  };
  const auto v = create_as("a", DType::float32, DType::bfloat16);
  EXPECT_TRUE(v.communication.stochastic_rounding);
  EXPECT_FALSE(v.storage.stochastic_rounding) << "the ps updates float32";
  const auto half = create_as("b", DType::float16, {});
  EXPECT_TRUE(half.storage.stochastic_rounding);
  EXPECT_FALSE(half.communication.stochastic_rounding);
  for (const auto& communication : {std::optional<DType>(), std::optional(DType::float32)}) {
    expect_error_naming(Code::invalid_argument, {"\"c\"", "float32", "communication_dtype"},
                        [&] { create_as("c", DType::float32, communication); });
  }
}

TEST_P(Bfloat16CommunicationTest, TablesCommunicateAlike) {
  start_small();
  const auto table = strategy_->variable_creator()
                         .create_table("t", DType::float32, 3, {},
                                       {.optimizer = optimizers::SGD{.learning_rate = -1},
                                        .max_keys = 1 << 12,
                                        .communication_dtype = DType::bfloat16})
                         ->descriptor;
  const float exact = 1000.0F + 1.0F / 64;
  push<float>(table, {-5, 77}, {exact, 1, 2, 3, 4, 5});
  push<float>(table, {-5}, {1, 0, 0});
  client().flush();
  EXPECT_EQ(lookup<float>(table, {77, 6, -5}), as_sent({3, 4, 5, 0, 0, 0, as_sent(exact) + 1, 1, 2}));
  std::vector<float> row(3);
  client().lookup_or_insert(table, Ids{-5}, row.data());
  EXPECT_EQ(row, as_sent({as_sent(exact) + 1, 1, 2}));
}

TEST_P(Bfloat16CommunicationTest, StrategyHasADefaultForFloats) {
  ranks_ = std::make_unique<RankThreads>(RankThreadsOptions{.ranks = 3, .network = GetParam().network});
  strategy_ = std::make_unique<strategy::Strategy>(ranks_->cluster().runtime(),
                                                   StrategyOptions{.communication_dtype = DType::bfloat16});
  const Shape shape{2};
  const auto create_with = [&](const std::string& name, DType dtype, const VariableOptions& options) {
    return strategy_->variable_creator().create(name, dtype, &shape, {}, options)->descriptor;
  };
  EXPECT_TRUE(create_with("a", DType::float32, {}).communication.bfloat16);
  EXPECT_FALSE(
      create_with("b", DType::float32, {.communication_dtype = DType::float32}).communication.bfloat16);
  EXPECT_FALSE(create_with("c", DType::float64, {}).communication.bfloat16);
  const auto create_table = [&](const std::string& name, DType dtype) {
    return strategy_->variable_creator().create_table(name, dtype, 2, {}, {.max_keys = 100})->descriptor;
  };
  EXPECT_TRUE(create_table("d", DType::float32).communication.bfloat16);
  EXPECT_FALSE(create_table("e", DType::int32).communication.bfloat16);
}

TEST_P(Bfloat16CommunicationTest, OtherDtypesAreRejected) {
  start_small();
  const auto attempt = [&](DType dtype, DType communication) {
    const Shape shape{2};
    (void)strategy_->variable_creator().create("v", dtype, &shape, {},
                                               {.communication_dtype = communication});
  };
  for (const auto& [dtype, communication] : {std::pair{DType::float64, DType::bfloat16},
                                             {DType::int32, DType::bfloat16},
                                             {DType::float16, DType::bfloat16},
                                             {DType::float32, DType::float16}}) {
    try {
      attempt(dtype, communication);
      FAIL() << to_string(dtype) << " accepted " << to_string(communication);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      EXPECT_NE(std::string(error.what()).find("communication_dtype"), std::string::npos) << error.what();
    }
  }
  EXPECT_NO_THROW(attempt(DType::float64, DType::float64));
}

INSTANTIATE_TEST_SUITE_P(Paths, Bfloat16CommunicationTest,
                         testing::Values(PathParam{Network::loop, "auto"}, PathParam{Network::loop, "rma"},
                                         PathParam{Network::loop, "am"}, PathParam{Network::ucx, "am"}),
                         path_name);

}  // namespace
}  // namespace capstan::client
