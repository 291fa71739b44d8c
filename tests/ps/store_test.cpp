// store_test.cpp -- compares shards with an array that follows the update rules one element at a time.
// Tests: src/ps/shard/shard.cpp
// Tests: src/ps/shard/shard_factory.cpp
#include "ps/shard/store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "base/log.hpp"
#include "capstan/error.hpp"
#include "ps/all_optimizers.hpp"
#include "ps/plain_update.hpp"
#include "ps/push_entry.hpp"
#include "support/expect_error.hpp"
#include "transport/loop/loop.hpp"

namespace capstan::ps {
namespace {

using testing::HasSubstr;

/// Reference implementation of a variable in double, as described in optimizers.hpp.
class Plain {
 public:
  Plain(const Optimizer& optimizer, std::uint64_t rows, std::uint64_t width, double value)
      : of_creation_(optimizer),
        optimizer_(optimizer),
        width_(width),
        elements_(rows * width, {value, starts_at(optimizer), 0}) {}

  void begin_push() {
    if (!rate_set_) optimizer_.learning_rate = learning_rate_after(t_, of_creation_);
    ++t_;
  }
  void set_learning_rate(double rate) {
    rate_set_ = true;
    optimizer_.learning_rate = rate;
  }
  void update(std::uint64_t row, std::uint64_t column, double g) {
    plain_update(optimizer_, elements_[row * width_ + column], g, t_);
  }
  double value(std::size_t i) const { return elements_[i].w; }
  std::size_t size() const { return elements_.size(); }

 private:
  static double starts_at(const Optimizer& o) {
    return o.kind == OptimizerKind::adagrad || o.kind == OptimizerKind::ftrl ? o.initial_accumulator : 0;
  }

  Optimizer of_creation_;
  Optimizer optimizer_;
  bool rate_set_ = false;
  std::uint64_t width_;
  std::vector<PlainElement> elements_;
  std::int64_t t_ = 0;
};

class StoreTest : public testing::Test {
 protected:
  void SetUp() override { log::set_rank_tag("ps 3@here"); }  // log to standard error

  /// Creates a variable of one shard.
  template <class T>
  protocol::ShardLocation create(std::uint32_t id, std::vector<std::uint64_t> shape,
                                 const Optimizer& optimizer, const Initializer& initializer = {}) {
    return store_.create(
        {id, 0, "v" + std::to_string(id), dtype_of<T>, shape, 0, shape[0], optimizer, initializer});
  }
  template <class T>
  std::vector<T> rows(std::uint32_t id, std::vector<std::uint32_t> numbers) {
    const auto bytes = gather(id, 0, numbers);
    std::vector<T> out(bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }
  std::vector<std::byte> gather(std::uint32_t id, std::uint32_t shard,
                                const std::vector<std::uint32_t>& numbers) {
    const auto view = store_.view(id, shard);
    std::vector<std::byte> out(numbers.size() * view.row_bytes);
    store_.gather(view, numbers, out.data());
    return out;
  }
  template <class T>
  std::vector<T> all(std::uint32_t id, std::uint64_t count) {
    std::vector<std::uint32_t> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0U);
    return rows<T>(id, numbers);
  }
  template <class T>
  void expect_follows_the_rules(std::uint32_t id, std::vector<std::uint64_t> shape,
                                const Optimizer& optimizer, double tolerance);
  void expect_dropped(const std::vector<std::byte>& entry) {
    testing::internal::CaptureStderr();
    apply_entry(store_, entry);
    EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("to variable "));
  }

  transport::LoopHub hub_;
  std::unique_ptr<transport::Fabric> fabric_ = hub_.open();
  Store store_{*fabric_, 1 << 20, 3};
};

template <class T>
void StoreTest::expect_follows_the_rules(std::uint32_t id, std::vector<std::uint64_t> shape,
                                         const Optimizer& optimizer, double tolerance) {
  SCOPED_TRACE(protocol::describe(optimizer) + " " + std::string(to_string(dtype_of<T>)));
  const std::uint64_t count = shape[0];
  const std::uint64_t width = shape.size() == 2 ? shape[1] : 1;
  create<T>(id, shape, optimizer, initializers::constant(3));
  Plain plain(optimizer, count, width, 3);
  std::mt19937 random(id);
  std::uniform_int_distribution<int> whole(-9, 9);
  for (int step = 0; step < 12; ++step) {
    plain.begin_push();
    const bool dense = step % 3 == 2;
    std::vector<std::uint32_t> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0U);
    std::uint64_t first_row = 0;
    if (dense) {
      first_row = step % 2 == 0 ? 0 : 2;
      numbers.erase(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(first_row));
    } else {
      std::shuffle(numbers.begin(), numbers.end(), random);
      numbers.resize(1 + static_cast<std::size_t>(step) % count);
    }
    std::vector<T> gradient;
    for (const std::uint32_t row : numbers) {
      for (std::uint64_t column = 0; column < width; ++column) {
        const int g = whole(random);
        gradient.push_back(static_cast<T>(g));
        plain.update(row, column, g);
      }
    }
    apply_entry(store_, push_entry<T>(id, 0, dense ? std::vector<std::uint32_t>{} : numbers, first_row, width,
                                      gradient));
  }
  const std::vector<T> values = all<T>(id, count);
  ASSERT_EQ(values.size(), plain.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(values[i]), plain.value(i), tolerance) << "element " << i;
  }
}

TEST_F(StoreTest, PushesMatchTheRulesForEveryDtypeRankAndOptimizer) {
  std::uint32_t id = 1;
  for (const std::vector<std::uint64_t>& shape :
       {std::vector<std::uint64_t>{7}, {5, 3}, {6, 16}, {9, 33}, {4, 1}}) {
    const Optimizer sgd = optimizers::SGD{.learning_rate = 0.25};
    const Optimizer adagrad = optimizers::Adagrad{.learning_rate = 0.3, .initial_accumulator = 0.5};
    const Optimizer adam = optimizers::Adam{.learning_rate = 0.1};
    for (const Optimizer& o :
         {Optimizer(optimizers::Momentum{}), Optimizer(optimizers::Momentum{.nesterov = true}),
          Optimizer(optimizers::RMSProp{}), Optimizer(optimizers::AdamW{.weight_decay = 0.5}),
          Optimizer(optimizers::FTRL{.learning_rate = 0.1, .initial_accumulator = 0.5, .l1 = 2})}) {
      expect_follows_the_rules<float>(id++, shape, o, 1e-4);
      expect_follows_the_rules<double>(id++, shape, o, 1e-12);
    }
    expect_follows_the_rules<float>(id++, shape, sgd, 0);
    expect_follows_the_rules<float>(id++, shape, adagrad, 1e-5);
    expect_follows_the_rules<float>(id++, shape, adam, 1e-5);
    expect_follows_the_rules<double>(id++, shape, sgd, 0);
    expect_follows_the_rules<double>(id++, shape, adagrad, 1e-12);
    expect_follows_the_rules<double>(id++, shape, adam, 1e-12);
    expect_follows_the_rules<std::int64_t>(id++, shape, optimizers::SGD{.learning_rate = 2}, 0);
  }
}

/// A schedule that FTRL also supports.
const schedules::PolynomialDecay kFalling{
    .initial_learning_rate = 0.5, .decay_steps = 6, .end_learning_rate = 0.125};

TEST_F(StoreTest, SchedulesApplyToEveryOptimizer) {
  std::uint32_t id = 1;
  for (const LearningRate& rate :
       {LearningRate(kFalling), LearningRate(schedules::PiecewiseConstantDecay{{2, 7}, {0.1, 0.4, 0.2}})}) {
    for (const Optimizer& optimizer : all_optimizers(rate))
      expect_follows_the_rules<double>(id++, {5, 3}, optimizer, 1e-12);
  }
}

TEST_F(StoreTest, LearningRateOverrideAppliesToLaterPushes) {
  std::uint32_t id = 0;
  for (const Optimizer& optimizer : all_optimizers(kFalling)) {
    SCOPED_TRACE(protocol::describe(optimizer));
    create<double>(++id, {1}, optimizer, initializers::constant(3));
    Plain plain(optimizer, 1, 1, 3);
    for (int step = 0; step < 9; ++step) {
      if (step == 4) {
        apply_entry(store_, rate_entry(id, 0, 0.25));
        plain.set_learning_rate(0.25);
      }
      if (step == 7) {
        apply_entry(store_, rate_entry(id, 0, 0.125));
        plain.set_learning_rate(0.125);
      }
      plain.begin_push();
      plain.update(0, 0, step - 3);
      apply_entry(store_, push_entry<double>(id, 0, {}, 0, 1, std::vector<double>{step - 3.0}));
    }
    EXPECT_NEAR(all<double>(id, 1)[0], plain.value(0), 1e-12);
  }
}

TEST_F(StoreTest, NewShardResetsWordsOfADroppedShard) {
  create<float>(1, {1}, optimizers::SGD{.learning_rate = -1});  // keeps the page of words allocated
  create<float>(2, {1}, optimizers::SGD{.learning_rate = -1});
  apply_entry(store_, rate_entry(2, 0, -100));
  apply_entry(store_, push_entry<float>(2, 0, {}, 0, 1, {1}));
  store_.drop(2);
  create<float>(3, {1}, optimizers::SGD{schedules::PiecewiseConstantDecay{{0}, {-1, -10}}});
  apply_entry(store_, push_entry<float>(3, 0, {}, 0, 1, {1}));
  EXPECT_EQ(all<float>(3, 1), std::vector<float>{1}) << "the rate and steps of shard 2 must not remain";
}

TEST_F(StoreTest, DropsAndLogsAnInvalidLearningRate) {
  create<float>(1, {1}, optimizers::SGD{.learning_rate = -1});
  create<float>(2, {1}, optimizers::FTRL{});
  create<std::int64_t>(3, {1}, optimizers::SGD{.learning_rate = -1});
  for (const auto& entry : {rate_entry(1, 0, std::numeric_limits<double>::quiet_NaN()), rate_entry(2, 0, 0),
                            rate_entry(3, 0, 0.5), rate_entry(1, 1, 0.5), rate_entry(9, 0, 0.5)}) {
    testing::internal::CaptureStderr();
    apply_entry(store_, entry);
    EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("rank 0"));
  }
  apply_entry(store_, push_entry<float>(1, 0, {}, 0, 1, {1}));
  apply_entry(store_, push_entry<std::int64_t>(3, 0, {}, 0, 1, {1}));
  EXPECT_EQ(all<float>(1, 1), std::vector<float>{1});
  EXPECT_EQ(all<std::int64_t>(3, 1), std::vector<std::int64_t>{1});
}

TEST_F(StoreTest, NewLearningRateAppliesToASynchronousStepInProgress) {
  store_.create_group({.id = 1, .mode = protocol::GroupMode::synchronous, .workers = {0}});
  store_.create(
      {1, 0, "v1", DType::float32, {1}, 0, 1, optimizers::SGD{.learning_rate = -1}, {}, /*group=*/1});
  apply_entry(store_, push_entry<float>(1, 0, {}, 0, 1, {1}));
  apply_entry(store_, rate_entry(1, 0, -10));
  EXPECT_EQ(all<float>(1, 1), std::vector<float>{0});
  protocol::PushHeader step;
  step.kind = protocol::PushKind::step;
  step.variable = 1;
  step.first_row = 1;
  store_.apply(step, {}, nullptr);
  EXPECT_EQ(all<float>(1, 1), std::vector<float>{10});
}

TEST_F(StoreTest, SecondRunOfAClosureDoesNotSetTheLearningRateAgain) {
  create<float>(1, {1}, optimizers::SGD{.learning_rate = -1});
  auto entry = rate_entry(1, 0, -10);
  protocol::PushHeader header;
  std::memcpy(&header, entry.data(), sizeof header);
  header.closure = 7;
  std::memcpy(entry.data(), &header, sizeof header);
  apply_entry(store_, entry);
  apply_entry(store_, rate_entry(1, 0, -100));  // set meanwhile by another rank
  header.again = 1;
  std::memcpy(entry.data(), &header, sizeof header);
  apply_entry(store_, entry);
  apply_entry(store_, push_entry<float>(1, 0, {}, 0, 1, {1}));
  EXPECT_EQ(all<float>(1, 1), std::vector<float>{100});
}

TEST_F(StoreTest, PushInPartsIsOneUpdate) {
  // Adam's first two steps differ, so the test detects a second part that counts as a step.
  const Optimizer adam = optimizers::Adam{.learning_rate = 1};
  create<double>(1, {4}, adam);
  create<double>(2, {4}, adam);
  const std::vector<double> gradient{1, 2, 3, 4};
  for (int push = 0; push < 3; ++push) {
    apply_entry(store_, push_entry<double>(1, 0, {}, 0, 1, gradient));
    apply_entry(store_, push_entry<double>(2, 0, {0, 1}, 0, 1, std::vector<double>{1, 2}));
    apply_entry(store_, push_entry<double>(2, 0, {2, 3}, 0, 1, std::vector<double>{3, 4}, false));
  }
  EXPECT_EQ(all<double>(1, 4), all<double>(2, 4));
  EXPECT_EQ(store_.statistics().pushes, 6U);
  EXPECT_EQ(store_.statistics().rows_pushed, 24U);
}

TEST_F(StoreTest, SkippedPartsStillBelongToTheirPush) {
  create<float>(1, {4, 1}, optimizers::SGD{.learning_rate = -1});
  const auto part = [&](std::uint32_t rank, std::uint32_t number, bool again, std::uint64_t closure = 7) {
    auto entry = push_entry<float>(1, 0, {number}, 0, 1, {1}, number == 0, number == 2);
    protocol::PushHeader header;
    std::memcpy(&header, entry.data(), sizeof header);
    header.rank = rank;
    header.closure = closure;
    header.part = number;
    header.again = again ? 1 : 0;
    std::memcpy(entry.data(), &header, sizeof header);
    return entry;
  };
  // Rank 1 dies after the first part. Rank 2 repeats the push while a push of rank 3 is unfinished.
  apply_entry(store_, part(1, 0, false));
  store_.remove_worker(1);
  store_.abandon(1, 0);
  EXPECT_TRUE(store_.is_consistent(1, 0));
  apply_entry(store_, part(3, 0, false, 8));
  apply_entry(store_, part(2, 0, true));
  apply_entry(store_, part(2, 1, true));
  apply_entry(store_, part(2, 2, true));
  EXPECT_FALSE(store_.is_consistent(1, 0)) << "the push of rank 3 is unfinished";
  apply_entry(store_, part(3, 1, false, 8));
  apply_entry(store_, part(3, 2, false, 8));
  EXPECT_TRUE(store_.is_consistent(1, 0));
  EXPECT_EQ(all<float>(1, 4), (std::vector<float>{2, 2, 2, 0}));
}

TEST_F(StoreTest, SparseSgdPushAcceptsRepeatedRows) {
  create<float>(1, {3}, optimizers::SGD{.learning_rate = 1});
  apply_entry(store_, push_entry<float>(1, 0, {1, 1, 0}, 0, 1, std::vector<float>{2, 5, 1}));
  EXPECT_EQ(all<float>(1, 3), (std::vector<float>{-1, -7, 0}));
}

TEST_F(StoreTest, AppliesGradientsOfBfloat16ToFloats) {
  create<float>(1, {4, 3}, optimizers::SGD{.learning_rate = -1}, initializers::constant(1000));
  const std::vector<bfloat16> gradient{bfloat16(1), bfloat16(2), bfloat16(0.5F)};
  apply_entry(store_, with_bfloat16(push_entry<bfloat16>(1, 0, {2}, 0, 3, gradient)));
  apply_entry(store_, with_bfloat16(push_entry<bfloat16>(1, 0, {}, 2, 3, gradient)));
  EXPECT_EQ(rows<float>(1, {2}), (std::vector<float>{1002, 1004, 1001}));
  EXPECT_EQ(rows<float>(1, {1, 3}), std::vector<float>(6, 1000));
}

TEST_F(StoreTest, HoldsBfloat16GradientsOfASynchronousStep) {
  store_.create_group({.id = 1, .mode = protocol::GroupMode::synchronous, .workers = {0}});
  store_.create(
      {1, 0, "v1", DType::float32, {3}, 0, 3, optimizers::SGD{.learning_rate = -1}, {}, /*group=*/1});
  apply_entry(store_, with_bfloat16(push_entry<bfloat16>(1, 0, {2}, 0, 1, {bfloat16(5)})));
  apply_entry(store_, with_bfloat16(push_entry<bfloat16>(1, 0, {1}, 0, 1, {bfloat16(7)})));
  EXPECT_EQ(all<float>(1, 3), std::vector<float>(3, 0));
  protocol::PushHeader step;
  step.kind = protocol::PushKind::step;
  step.variable = 1;
  step.first_row = 1;
  store_.apply(step, {}, nullptr);
  EXPECT_EQ(all<float>(1, 3), (std::vector<float>{0, 7, 5}));
}

TEST_F(StoreTest, InitialValuesDoNotDependOnSharding) {
  const Initializer normal = initializers::normal(0, 1, 5);
  store_.create({1, 0, "whole", DType::float32, {10, 3}, 0, 10, {}, normal});
  store_.create({2, 0, "cut", DType::float32, {10, 3}, 0, 4, {}, normal});
  store_.create({2, 1, "cut", DType::float32, {10, 3}, 4, 6, {}, normal});
  auto whole = gather(1, 0, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  auto cut = gather(2, 0, {0, 1, 2, 3});
  const auto rest = gather(2, 1, {0, 1, 2, 3, 4, 5});
  cut.insert(cut.end(), rest.begin(), rest.end());
  EXPECT_EQ(whole, cut);
}

TEST_F(StoreTest, LocationRefersToTheValues) {
  const protocol::ShardLocation location =
      store_.create({1, 2, "w", DType::float64, {100, 2}, 40, 30, {}, initializers::constant(6)});
  EXPECT_EQ(location.ps, 3);
  EXPECT_EQ(location.first_row, 40U);
  EXPECT_EQ(location.rows, 30U);
  const auto client = hub_.open();
  const auto window = client->connect(0, "ps", fabric_->address())
                          .open_window(store_.heap().key(location.region), transport::WindowPath::automatic);
  double value = 0;
  std::memcpy(&value, window->mapped() + location.offset + 59 * sizeof value, sizeof value);
  EXPECT_EQ(value, 6);
}

TEST_F(StoreTest, GatherPreservesOrderAndRepeats) {
  create<std::int64_t>(1, {4, 2}, optimizers::SGD{.learning_rate = -1});
  apply_entry(store_, push_entry<std::int64_t>(1, 0, {}, 0, 2,
                                               std::vector<std::int64_t>{0, 1, 10, 11, 20, 21, 30, 31}));
  EXPECT_EQ(rows<std::int64_t>(1, {2, 0, 2}), (std::vector<std::int64_t>{20, 21, 0, 1, 20, 21}));
  EXPECT_TRUE(rows<std::int64_t>(1, {}).empty());
}

TEST_F(StoreTest, AssignmentPreservesSlots) {
  create<double>(1, {3}, optimizers::Adagrad{.learning_rate = 1, .initial_accumulator = 0, .epsilon = 0});
  apply_entry(store_, push_entry<double>(1, 0, {}, 0, 1, std::vector<double>{3, 3, 3}));  // accumulator 9
  apply_entry(store_,
              with_op(push_entry<double>(1, 0, {}, 1, 1, std::vector<double>{7, 8}), protocol::RowOp::set));
  EXPECT_EQ(all<double>(1, 3), (std::vector<double>{-1, 7, 8}));
  apply_entry(store_, push_entry<double>(1, 0, {1}, 0, 1, std::vector<double>{4}));  // 4 / sqrt(9 + 16)
  EXPECT_DOUBLE_EQ(all<double>(1, 3)[1], 7 - 0.8);
}

TEST_F(StoreTest, RejectsUnknownAndDuplicateShards) {
  create<float>(1, {4, 2}, {});
  EXPECT_THAT(error_of(Code::already_exists,
                       [&] {
                         create<float>(1, {4, 2}, {});
                       }),
              testing::AllOf(HasSubstr("shard 0 of variable 1 (\"v1\")"), HasSubstr("ps 3")));
  EXPECT_THAT(error_of(Code::not_found, [&] { (void)store_.view(1, 1); }),
              testing::AllOf(HasSubstr("shard 1 of variable 1"), HasSubstr("ps 3")));
  EXPECT_THAT(error_of(Code::not_found, [&] { (void)store_.view(8, 0); }),
              testing::AllOf(HasSubstr("shard 0 of variable 8"), HasSubstr("ps 3")));
}

TEST_F(StoreTest, RejectsAShardWhoseSizeOverflows) {
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 61;
  const auto refused = [&](const protocol::CreateShard& request) {
    const std::string text = error_of(Code::invalid_argument, [&] { store_.create(request); });
    EXPECT_THAT(text, HasSubstr("\"v\""));
    EXPECT_TRUE(store_.list().empty());
    EXPECT_EQ(store_.heap().bytes(), 0U);
  };
  refused({1, 0, "v", DType::float64, {kHuge}, 0, kHuge, {}, {}});
  refused({1, 0, "v", DType::float64, {kHuge + 512}, 0, kHuge + 512, {}, {}});
  refused({1, 0, "v", DType::float64, {2, kHuge}, 0, 1, {}, {}});
  const std::uint64_t rows = (std::uint64_t{1} << 32) + 16;
  refused({1, 0, "v", DType::boolean, {rows}, 0, rows, {}, {}});
  refused({1, 1, "v", DType::float64, {10}, 5, 6, {}, {}});
  refused({1, 1, "v", DType::float64, {10}, ~std::uint64_t{0}, 6, {}, {}});
}

TEST_F(StoreTest, IntegersRequireSgdWithAnIntegralLearningRate) {
  const Optimizer refused[] = {optimizers::SGD{.learning_rate = 0.5}, optimizers::Adagrad{},
                               optimizers::Adam{}};
  for (const Optimizer& optimizer : refused) {
    try {
      create<std::int64_t>(1, {4}, optimizer);
      ADD_FAILURE() << protocol::describe(optimizer);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      EXPECT_THAT(error.what(), HasSubstr("variable \"v1\" is int64"));
    }
  }
  EXPECT_NO_THROW(create<std::int64_t>(1, {4}, optimizers::SGD{.learning_rate = -3}));
}

TEST_F(StoreTest, RejectsAShardWithParametersOutOfRange) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const auto expect_rejected = [this](const Optimizer& optimizer, const Initializer& initializer) {
    (void)error_of(Code::invalid_argument, [&] { create<float>(1, {4}, optimizer, initializer); });
  };
  expect_rejected(optimizers::SGD{.learning_rate = kNan}, {});
  expect_rejected(optimizers::Adam{.beta1 = 1}, {});
  expect_rejected({.kind = static_cast<OptimizerKind>(99)}, {});
  expect_rejected({}, initializers::normal(0, kNan));
  EXPECT_NO_THROW(create<float>(1, {4}, optimizers::SGD{}));
}

TEST_F(StoreTest, DropsAndLogsAPushThatDoesNotFit) {
  create<float>(1, {4, 2}, optimizers::SGD{.learning_rate = 1});
  const std::vector<float> row{1, 1};
  expect_dropped(push_entry<float>(9, 0, {0}, 0, 2, row));  // no such variable
  expect_dropped(push_entry<float>(1, 1, {0}, 0, 2, row));  // no such shard
  expect_dropped(push_entry<float>(1, 0, {4}, 0, 2, row));  // no such row
  expect_dropped(push_entry<float>(1, 0, {0, 0xffffffff}, 0, 2, std::vector<float>(4)));
  expect_dropped(push_entry<float>(1, 0, {}, 4, 2, row));                     // beyond the end
  expect_dropped(push_entry<float>(1, 0, {}, 0, 2, std::vector<float>(10)));  // five rows
  expect_dropped(push_entry<float>(1, 0, {}, std::uint64_t(-1), 2, row));
  expect_dropped(push_entry<float>(1, 0, {0}, 0, 50, std::vector<float>(50)));  // rows of another width
  // More rows than bytes: reading them would exceed the ring.
  auto short_entry = push_entry<float>(1, 0, {}, 0, 2, row);
  protocol::PushHeader header;
  std::memcpy(&header, short_entry.data(), sizeof header);
  header.rows = 4;
  header.bytes = 64;
  std::memcpy(short_entry.data(), &header, sizeof header);
  expect_dropped(short_entry);
  // A kind that no client sends.
  header.kind = static_cast<protocol::PushKind>(77);
  header.rows = 1;
  header.bytes = 128;
  std::memcpy(short_entry.data(), &header, sizeof header);
  expect_dropped(short_entry);

  // bfloat16 for another dtype, of another width, or for an assignment.
  create<double>(2, {4, 2}, optimizers::SGD{.learning_rate = 1});
  const std::vector<bfloat16> narrow(2, bfloat16(1));
  expect_dropped(with_bfloat16(push_entry<bfloat16>(2, 0, {0}, 0, 2, narrow)));
  expect_dropped(with_bfloat16(push_entry<bfloat16>(1, 0, {0}, 0, 80, std::vector<bfloat16>(80))));
  expect_dropped(with_op(with_bfloat16(push_entry<bfloat16>(1, 0, {0}, 0, 2, narrow)), protocol::RowOp::set));
  expect_dropped(with_bfloat16(push_entry<bfloat16>(1, 0, {4}, 0, 2, narrow)));  // no such row
  expect_dropped(with_bfloat16(push_entry<bfloat16>(9, 0, {0}, 0, 2, narrow)));  // no such variable

  EXPECT_EQ(all<float>(1, 4), std::vector<float>(8, 0));
  EXPECT_EQ(store_.statistics().pushes, 0U);
  // The shard is still usable.
  apply_entry(store_, push_entry<float>(1, 0, {3}, 0, 2, row));
  EXPECT_EQ(rows<float>(1, {3}), (std::vector<float>{-1, -1}));
}

}  // namespace
}  // namespace capstan::ps
