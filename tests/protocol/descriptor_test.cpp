// descriptor_test.cpp -- sizes of variables, descriptions of optimizers, and serialization of both.
#include "protocol/descriptor.hpp"

#include <gtest/gtest.h>

#include "capstan/serialize.hpp"
#include "protocol/ps_messages.hpp"
#include "support/expect_error.hpp"

namespace capstan::protocol {
namespace {

TEST(Descriptor, RowsAndWidthComeFromTheShape) {
  VariableDescriptor d;
  d.shape = {7};
  EXPECT_EQ(d.rows(), 7U);
  EXPECT_EQ(d.width(), 1U);
  EXPECT_EQ(d.row_bytes(), 4U);
  d.shape = {7, 3};
  d.dtype = DType::float64;
  EXPECT_EQ(d.width(), 3U);
  EXPECT_EQ(d.row_bytes(), 24U);
}

TEST(Descriptor, RejectsVariablesWhoseBytesOverflowInt64) {
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 61;
  const auto check = [](DType dtype, const std::vector<std::uint64_t>& shape, OptimizerKind optimizer) {
    check_bytes("huge", dtype, shape, optimizer);
  };
  const std::vector<std::vector<std::uint64_t>> rejected{
      {kHuge}, {kHuge + 512}, {kHuge / 2}, {kHuge, 2}, {1, kHuge}, {0, kHuge}, {kHuge, kHuge, kHuge}};
  for (const auto& shape : rejected) {
    const std::string text =
        error_of(Code::invalid_argument, [&] { check(DType::float64, shape, OptimizerKind::sgd); });
    EXPECT_NE(text.find("\"huge\""), text.npos) << text;
    EXPECT_NE(text.find(std::to_string(shape[0])), text.npos) << text;
  }
  check(DType::float64, {kHuge / 2 - 1}, OptimizerKind::sgd);
  check(DType::boolean, {kHuge}, OptimizerKind::sgd);
  check(DType::float64, {0, 3}, OptimizerKind::adam);
  check(DType::float64, {}, OptimizerKind::adam);
  // With Adam's two slots, a float64 element takes 24 bytes, and a bfloat16 element 10: its slots are float.
  check(DType::float64, {kHuge / 8}, OptimizerKind::adam);
  error_of(Code::invalid_argument, [&] { check(DType::float64, {kHuge / 4}, OptimizerKind::adam); });
  error_of(Code::invalid_argument, [&] { check(DType::bfloat16, {kHuge / 2}, OptimizerKind::adam); });
}

TEST(Descriptor, RejectsShardsWithTooManyRows) {
  check_shard_rows("wide", 0, kMaxShardRows, kMaxShardRows);
  const std::string text = error_of(
      Code::invalid_argument, [] { check_shard_rows("wide", 3, kMaxShardRows + 1, 2 * kMaxShardRows + 1); });
  for (const char* part : {"\"wide\"", "4294967295", "4294967294", "variable_partitioner", "3 shards"})
    EXPECT_NE(text.find(part), text.npos) << text;
}

TEST(Descriptor, DescribesOptimizersWithTheirParameters) {
  EXPECT_EQ(describe(optimizers::SGD{.learning_rate = 0.5}), "sgd(learning_rate=0.5)");
  EXPECT_EQ(describe(optimizers::SGD{schedules::ExponentialDecay{0.5, 100, 0.25, true}}),
            "sgd(learning_rate=0.5, schedule=exponential_decay, decay_steps=100, decay_rate=0.25, "
            "staircase=true)");
  EXPECT_EQ(describe(optimizers::SGD{schedules::PolynomialDecay{0.5, 100, 0.1, 2}}),
            "sgd(learning_rate=0.5, schedule=polynomial_decay, decay_steps=100, end_learning_rate=0.1, "
            "power=2, cycle=false)");
  EXPECT_EQ(describe(optimizers::SGD{schedules::CosineDecay{0.5, 100, 0.25, 2, 10}}),
            "sgd(learning_rate=0.5, schedule=cosine_decay, decay_steps=100, alpha=0.25, warmup_target=2, "
            "warmup_steps=10)");
  EXPECT_EQ(describe(optimizers::SGD{schedules::PiecewiseConstantDecay{{5, 10}, {1, 0.5, 0.25}}}),
            "sgd(learning_rate=1, schedule=piecewise_constant_decay, boundaries=5;10, values=1;0.5;0.25)");
  EXPECT_EQ(describe(optimizers::Adagrad{.learning_rate = 0.1}),
            "adagrad(learning_rate=0.1, initial_accumulator=0.1, epsilon=1e-07)");
  EXPECT_EQ(describe(optimizers::Adam{.learning_rate = 2}),
            "adam(learning_rate=2, beta1=0.9, beta2=0.999, epsilon=1e-07)");
  EXPECT_EQ(describe(optimizers::Momentum{.learning_rate = 0.1, .nesterov = true}),
            "momentum(learning_rate=0.1, momentum=0.9, nesterov=true)");
  EXPECT_EQ(describe(optimizers::RMSProp{.rho = 0.5}),
            "rmsprop(learning_rate=0.001, rho=0.5, epsilon=1e-07)");
  EXPECT_EQ(describe(optimizers::AdamW{.weight_decay = 0.25}),
            "adamw(learning_rate=0.001, weight_decay=0.25, beta1=0.9, beta2=0.999, epsilon=1e-07)");
  EXPECT_EQ(describe(optimizers::FTRL{.l1 = 1, .l2 = 2, .l2_shrinkage = 3, .beta = 4}),
            "ftrl(learning_rate=0.001, learning_rate_power=-0.5, initial_accumulator=0.1, l1=1, l2=2, "
            "l2_shrinkage=3, beta=4)");
}

TEST(Descriptor, ListsTheSlotsOfEachOptimizer) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(slots_of(OptimizerKind::sgd), Names{});
  EXPECT_EQ(slots_of(OptimizerKind::adagrad), Names{"accumulator"});
  EXPECT_EQ(slots_of(OptimizerKind::adam), (Names{"m", "v"}));
  EXPECT_EQ(slots_of(OptimizerKind::momentum), Names{"velocity"});
  EXPECT_EQ(slots_of(OptimizerKind::rmsprop), Names{"mean_square"});
  EXPECT_EQ(slots_of(OptimizerKind::adamw), (Names{"m", "v"}));
  EXPECT_EQ(slots_of(OptimizerKind::ftrl), (Names{"accumulator", "linear"}));
}

TEST(Descriptor, OnlyAccumulatorsStartAboveZero) {
  EXPECT_EQ(initial_slot_value(optimizers::Adagrad{.initial_accumulator = 0.25}, 0), 0.25);
  EXPECT_EQ(initial_slot_value(optimizers::FTRL{.initial_accumulator = 0.5}, 0), 0.5);
  EXPECT_EQ(initial_slot_value(optimizers::FTRL{.initial_accumulator = 0.5}, 1), 0);
  EXPECT_EQ(initial_slot_value(optimizers::Momentum{}, 0), 0);
  EXPECT_EQ(initial_slot_value(optimizers::RMSProp{}, 0), 0);
  for (const std::size_t slot : {0, 1}) {
    EXPECT_EQ(initial_slot_value(optimizers::Adam{}, slot), 0);
    EXPECT_EQ(initial_slot_value(optimizers::AdamW{}, slot), 0);
  }
}

TEST(Descriptor, OptimizerKindsKeepTheirValues) {
  EXPECT_EQ(static_cast<int>(OptimizerKind::sgd), 1);
  EXPECT_EQ(static_cast<int>(OptimizerKind::adagrad), 2);
  EXPECT_EQ(static_cast<int>(OptimizerKind::adam), 3);
  EXPECT_EQ(static_cast<int>(OptimizerKind::momentum), 4);
  EXPECT_EQ(static_cast<int>(OptimizerKind::rmsprop), 5);
  EXPECT_EQ(static_cast<int>(OptimizerKind::adamw), 6);
  EXPECT_EQ(static_cast<int>(OptimizerKind::ftrl), 7);
}

TEST(Descriptor, SerializesEveryOptimizer) {
  const Optimizer all[] = {
      optimizers::SGD{0.5},
      optimizers::Momentum{0.5, 0.25, true},
      optimizers::Adagrad{0.5, 0.25, 0.125},
      optimizers::RMSProp{0.5, 0.25, 0.125},
      optimizers::Adam{0.5, 0.25, 0.125, 1},
      optimizers::AdamW{0.5, 0.25, 0.125, 1, 2},
      optimizers::FTRL{0.5, -0.25, 0.125, 1, 2, 3, 4},
  };
  for (const Optimizer& o : all) {
    EXPECT_EQ(describe(from_bytes<Optimizer>(to_bytes(o))), describe(o));
  }
}

TEST(Descriptor, SerializesAllFields) {
  VariableDescriptor d;
  d.id = 9;
  d.name = "entities";
  d.dtype = DType::int64;
  d.shape = {10, 4};
  d.optimizer = optimizers::Adam{.learning_rate = 0.25, .beta1 = 0.5};
  d.shards = {{1, 0, 5, 2, 4096}, {0, 5, 5, 0, 8192}};
  const auto back = from_bytes<VariableDescriptor>(to_bytes(d));
  EXPECT_EQ(back.id, d.id);
  EXPECT_EQ(back.name, d.name);
  EXPECT_EQ(back.dtype, d.dtype);
  EXPECT_EQ(back.shape, d.shape);
  EXPECT_EQ(describe(back.optimizer), describe(d.optimizer));
  ASSERT_EQ(back.shards.size(), 2U);
  EXPECT_EQ(back.shards[0].ps, 1);
  EXPECT_EQ(back.shards[1].first_row, 5U);
  EXPECT_EQ(back.shards[1].offset, 8192U);
}

TEST(Protocol, SerializesCreateShard) {
  CreateShard request;
  request.variable = 3;
  request.shard = 1;
  request.name = "w";
  request.dtype = DType::float64;
  request.shape = {6, 2};
  request.first_row = 3;
  request.rows = 3;
  request.optimizer = optimizers::Adagrad{};
  request.initializer = initializers::normal(1, 2, 42);
  const auto back = from_bytes<CreateShard>(to_bytes(request));
  EXPECT_EQ(back.name, "w");
  EXPECT_EQ(back.first_row, 3U);
  EXPECT_EQ(back.initializer.kind, InitializerKind::normal);
  EXPECT_EQ(back.initializer.b, 2);
  EXPECT_EQ(back.initializer.seed, 42U);
  EXPECT_EQ(back.optimizer.kind, OptimizerKind::adagrad);
}

}  // namespace
}  // namespace capstan::protocol
