// variable_test.cpp -- the public interface of variables.
// Tests: src/strategy/pending_call.hpp
#include "capstan/variable.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <thread>

#include "capstan/strategy.hpp"
#include "support/expect_error.hpp"
#include "support/rank_threads.hpp"

namespace capstan {
namespace {

using Ids = std::vector<std::int64_t>;
using testing::HasSubstr;

class VariableTest : public testing::Test {
 protected:
  RankThreads ranks_{{.ranks = 4, .flags = {{"ps", "2"}}}};
  ParameterServerStrategy strategy_{ranks_.cluster(), {.variable_partitioner = FixedShardsPartitioner{2}}};
  ParameterServerStrategy::Scope scope_{&strategy_.implementation()};
};

TEST_F(VariableTest, ReturnsItsProperties) {
  const Variable<float> matrix("matrix", Shape{5, 2});
  EXPECT_EQ(matrix.name(), "matrix");
  EXPECT_EQ(matrix.dtype(), DType::float32);
  EXPECT_EQ(matrix.shape(), (Shape{5, 2}));
  EXPECT_EQ(matrix.rows(), 5U);
  EXPECT_EQ(matrix.width(), 2U);
  const Variable<double> vector("vector", Shape{7});
  EXPECT_EQ(vector.dtype(), DType::float64);
  EXPECT_EQ(vector.width(), 1U);
}

TEST_F(VariableTest, StartsWithItsInitializer) {
  EXPECT_EQ(Variable<float>("zeros", Shape{2, 2}).pull(), std::vector<float>(4, 0));
  EXPECT_EQ(
      Variable<std::int64_t>("sevens", Shape{3}, initializers::constant(7), {optimizers::SGD{1}}).pull(),
      std::vector<std::int64_t>(3, 7));
  const auto uniform = Variable<double>("uniform", Shape{1000}, initializers::uniform(-2, 3, 1)).pull();
  EXPECT_GE(*std::min_element(uniform.begin(), uniform.end()), -2);
  EXPECT_LT(*std::max_element(uniform.begin(), uniform.end()), 3);
  EXPECT_NEAR(std::accumulate(uniform.begin(), uniform.end(), 0.0) / 1000, 0.5, 0.2);
}

TEST_F(VariableTest, TakesItsDefaultSeedFromItsName) {
  const auto values = [](const std::string& name, const Initializer& initial) {
    return Variable<float>(name, Shape{10, 4}, initial).pull();
  };
  EXPECT_NE(values("a", initializers::normal(0, 1)), values("b", initializers::normal(0, 1)));
  EXPECT_EQ(values("c", initializers::normal(0, 1, 3)), values("d", initializers::normal(0, 1, 3)));
}

TEST(RoundedVariable, ReadsExactRowsOnRequest) {
  const RankThreads ranks{{.ranks = 4, .flags = {{"ps", "2"}, {"window", "am"}}}};
  ParameterServerStrategy strategy{ranks.cluster(), {.variable_partitioner = FixedShardsPartitioner{2}}};
  const ParameterServerStrategy::Scope scope{&strategy.implementation()};
  const Variable<float> v("v", Shape{4, 16}, initializers::normal(0, 1),
                          {.communication_dtype = DType::bfloat16, .int8_lookups = true});
  std::vector<float> values(64);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
  v.assign(values);
  const Ids all{0, 1, 2, 3};
  EXPECT_NE(v.pull(), values);
  EXPECT_NE(v.lookup(all).values, values);
  EXPECT_EQ(v.exact().pull(), values);
  EXPECT_EQ(v.exact().lookup(all).values, values);
  EXPECT_NE(v.lookup(all).values, values) << "the variable itself has changed";
}

TEST_F(VariableTest, ReturnsRowsInTheRequestedOrder) {
  const Variable<float> v("v", Shape{5, 2});
  std::vector<float> values(10);
  std::iota(values.begin(), values.end(), 0.F);
  v.assign(values);
  const Rows<float> rows = v.lookup(Ids{4, 0, 4});
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows.width, 2U);
  EXPECT_EQ(std::vector<float>(rows[0].begin(), rows[0].end()), (std::vector<float>{8, 9}));
  EXPECT_EQ(std::vector<float>(rows[1].begin(), rows[1].end()), (std::vector<float>{0, 1}));
  std::vector<float> out(4);
  v.lookup(Ids{1, 2}, out);
  EXPECT_EQ(out, (std::vector<float>{2, 3, 4, 5}));
  v.pull(2, out);
  EXPECT_EQ(out, (std::vector<float>{4, 5, 6, 7}));
  v.assign(std::vector<float>{-1, -2}, 3);
  EXPECT_EQ(v.pull(), (std::vector<float>{0, 1, 2, 3, 4, 5, -1, -2, 8, 9}));
}

TEST_F(VariableTest, MapsTheRowsOfAShard) {
  const Variable<float> v("v", Shape{4, 2}, initializers::constant(1));
  expect_error_naming(Code::failed_precondition, {"\"v\"", "2 shards"}, [&] { (void)v.mapped(); });
  const MappedRows<float> rows = v.variables()[1].mapped();
  ASSERT_EQ(rows.size(), 2U);
  v.assign(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(std::vector<float>(rows[1].begin(), rows[1].end()), (std::vector<float>{7, 8}));
}

TEST(MappedRows, OutliveTheJob) {
  MappedRows<float> rows;
  {
    RankThreads ranks({.ranks = 3, .flags = {{"ps", "1"}}});
    ParameterServerStrategy strategy(ranks.cluster());
    const auto scope = strategy.scope();
    rows = Variable<float>("v", {1, 2, 3}).mapped();
  }
  EXPECT_EQ(rows[2][0], 3);
}

TEST_F(VariableTest, AcceptsSparseAndDenseGradients) {
  const Variable<float> v("v", Shape{4}, initializers::constant(10), {optimizers::SGD{.learning_rate = 0.5}});
  v.push(IndexedSlices<float>{{3, 1}, {2, 4}});
  v.push_dense(std::vector<float>{1, 1, 1, 1});
  v.flush();
  EXPECT_EQ(v.pull(), (std::vector<float>{9.5, 7.5, 9.5, 8.5}));
}

TEST_F(VariableTest, FlushWaitsForPushes) {
  const Variable<float> v("v", Shape{4}, {}, {optimizers::SGD{.learning_rate = -1}});
  Pending sparse = v.push_async(Ids{0, 3}, std::vector<float>{1, 2});
  Pending dense = v.push_dense_async(std::vector<float>{10, 10, 10, 10});
  dense.wait();
  EXPECT_TRUE(dense.ready());
  EXPECT_TRUE(sparse.ready()) << "earlier pushes have been applied too";
  EXPECT_EQ(v.pull(), (std::vector<float>{11, 10, 10, 12}));
  sparse = std::move(dense);
  sparse.wait();
  { const Pending dropped = v.push_async(Ids{1}, std::vector<float>{5}); }
  v.flush();
  EXPECT_EQ(v.pull(), (std::vector<float>{11, 15, 10, 12}));
}

TEST_F(VariableTest, SetsLearningRatesForAllRowsOrOneShard) {
  const Variable<float> v("v", Shape{4}, {}, {optimizers::SGD{.learning_rate = -1}});
  v.set_learning_rate(-2);
  v.push_dense(std::vector<float>{1, 1, 1, 1});
  v.flush();
  EXPECT_EQ(v.pull(), (std::vector<float>{2, 2, 2, 2}));
  v.variables().at(1).set_learning_rate(-10);
  v.push_dense(std::vector<float>{1, 1, 1, 1});
  v.flush();
  EXPECT_EQ(v.pull(), (std::vector<float>{4, 4, 12, 12}));
}

TEST_F(VariableTest, FollowsTheLearningRateScheduleUntilOneIsSet) {
  const Variable<float> v("v", Shape{2}, {},
                          {optimizers::SGD{schedules::PiecewiseConstantDecay{{0}, {-1, -10}}}});
  const auto push = [&] { v.push_dense(std::vector<float>{1, 1}); };
  push();
  push();
  v.flush();
  EXPECT_EQ(v.pull(), (std::vector<float>{11, 11}));
  v.set_learning_rate(-100);
  push();
  v.flush();
  EXPECT_EQ(v.pull(), (std::vector<float>{111, 111}));
}

TEST_F(VariableTest, RejectsInvalidLearningRates) {
  const Variable<float> v("v", Shape{4}, {}, {optimizers::FTRL{}});
  const Variable<std::int64_t> n("n", Shape{4});
  for (const double rate : {0.0, -1.0, std::numeric_limits<double>::infinity()}) {
    EXPECT_THAT(error_of(Code::invalid_argument, [&] { v.set_learning_rate(rate); }), HasSubstr("\"v\""));
  }
  EXPECT_THAT(error_of(Code::invalid_argument, [&] { n.set_learning_rate(0.5); }), HasSubstr("\"n\""));
}

TEST_F(VariableTest, SupportsGroupedAndAsynchronousReads) {
  const Variable<float> v("v", Shape{5, 2}, {}, {optimizers::SGD{.learning_rate = -1}});
  const Variable<double> w("w", Shape{3}, {}, {optimizers::SGD{.learning_rate = -1}});
  const Ids v_ids{4, 1};
  const Ids w_ids{2};
  const std::vector<float> v_gradient{1, 2, 3, 4};
  const std::vector<double> w_gradient{5};
  push_all(Push{v, v_ids, v_gradient}, Push{w, w_ids, w_gradient});
  v.flush();
  std::vector<float> v_out(4);
  std::vector<double> w_out(1);
  lookup_all(Lookup{v, v_ids, v_out}, Lookup{w, w_ids, w_out});
  EXPECT_EQ(v_out, v_gradient);
  EXPECT_EQ(w_out, w_gradient);

  std::vector<float> later(4);
  std::vector<float> all(10);
  Pending rows = v.lookup_async(v_ids, later);
  Pending everything = v.pull_async(0, all);
  rows.wait();
  everything.wait();
  EXPECT_TRUE(rows.ready());
  EXPECT_EQ(later, v_gradient);
  EXPECT_EQ(all, v.pull());
}

TEST_F(VariableTest, CopyRefersToTheSameVariable) {
  const Variable<float> v("v", Shape{2});
  const Variable<float> copy = v;  // NOLINT: the test is about the copy
  copy.assign(std::vector<float>{1, 2});
  EXPECT_EQ(v.pull(), (std::vector<float>{1, 2}));
}

TEST_F(VariableTest, SerializesAsItsNumber) {
  const Variable<float> v("v", Shape{2}, initializers::constant(3));
  const auto bytes = to_bytes(v);
  EXPECT_EQ(bytes.size(), 8U);
  EXPECT_EQ(from_bytes<Variable<float>>(bytes).pull(), (std::vector<float>{3, 3}));
  EXPECT_THROW((void)from_bytes<Variable<float>>(to_bytes(std::pair(std::uint32_t{99}, std::uint32_t{0}))),
               Error);
  const Counter counter("c");
  counter.fetch_add(4);
  EXPECT_EQ(from_bytes<Counter>(to_bytes(counter)).value(), 4);
}

TEST_F(VariableTest, RejectsMismatchedSizes) {
  const Variable<float> v("v", Shape{4, 3});
  std::vector<float> seven(7);
  const auto expect = [](const std::string& text, const auto& call) {
    try {
      call();
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      EXPECT_EQ(std::string(error.what()), text);
    }
  };
  expect("lookup of variable \"v\": 2 rows of 3 elements make 6 elements, 7 were given", [&] {
    v.lookup(Ids{0, 1}, seven);
  });
  expect("push of variable \"v\": 2 rows of 3 elements make 6 elements, 7 were given", [&] {
    v.push(Ids{0, 1}, seven);
  });
  expect("push_dense of variable \"v\": 4 rows of 3 elements make 12 elements, 7 were given",
         [&] { v.push_dense(seven); });
  expect("assign of variable \"v\": 4 rows of 3 elements make 12 elements, 7 were given",
         [&] { v.assign(seven); });
  expect("pull of variable \"v\": 2 rows of 3 elements make 6 elements, 7 were given",
         [&] { v.pull(0, seven); });
  v.flush();
  EXPECT_EQ(v.pull(), std::vector<float>(12, 0));
}

TEST_F(VariableTest, CounterRejectsAThreadWithoutAStrategy) {
  const Counter counter("c");
  std::jthread([&counter] {
    try {
      (void)counter.value();
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::failed_precondition);
    }
  }).join();
}

}  // namespace
}  // namespace capstan
