// replicas_test.cpp -- run, reduce, gather and the replica context, as TensorFlow's ParameterServerStrategy
// has them; the line above a test names the rows and cases of its specification.
#include "capstan/replica.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "capstan/capstan.hpp"
#include "support/expect_error.hpp"
#include "support/log_text.hpp"
#include "support/rank_threads.hpp"

namespace capstan {
namespace {

using testing::HasSubstr;
using Floats = std::vector<float>;

struct Size {
  int replicas;
  int ps;
};
void PrintTo(const Size& size, std::ostream* out) {
  *out << size.replicas << " replicas, " << size.ps << " ps";
}

/// 0, 1, 2, ... in a shape.
Array<double> counted(const Shape& shape) {
  Array<double> array(shape);
  std::iota(array.values.begin(), array.values.end(), 0.0);
  return array;
}

/// Replica id's own (id + 1, 2) numbers.
std::vector<double> rows_of(int id) {
  return std::vector<double>(static_cast<std::size_t>(2 * (id + 1)), id);
}

class ReplicasConformance : public testing::TestWithParam<Size> {
 protected:
  static constexpr int kWorkers = 2;

  ReplicasConformance() { strategy_.allow_run_without_coordinator(); }
  template <class T>
  PerReplica<T> everywhere(const T& value) const {
    return {std::vector<T>(static_cast<std::size_t>(n_), value)};
  }

  const int n_ = GetParam().replicas;
  RankThreads ranks_{{.ranks = 1 + kWorkers + GetParam().ps,
                      .flags = {{"ps", std::to_string(GetParam().ps)}, {"replicas", std::to_string(n_)}}}};
  ParameterServerStrategy strategy_{ranks_.cluster(), {.variable_partitioner = FixedShardsPartitioner{2}}};
  ClusterCoordinator coordinator_{strategy_};
};

// A2.13, A2.14, B91, B92, B184: same.
TEST_P(ReplicasConformance, WhatReplicasAssignIsAggregatedAndAssignedOnce) {
  const auto scope = strategy_.scope();
  const auto make = [](const std::string& name, VariableAggregation aggregation) {
    return Variable<float>(name, {8}, initializers::constant(1), {.aggregation = aggregation});
  };
  const auto summed = make("summed", VariableAggregation::sum);
  const auto averaged = make("averaged", VariableAggregation::mean);
  const auto first = make("first", VariableAggregation::only_first_replica);
  const auto none = make("none", VariableAggregation::none);
  strategy_.run([&] {
    const auto id = static_cast<float>(get_replica_context().replica_id_in_sync_group());
    const Floats values{id + 10, 1, 2, 3, 4, 5, 6, 7};
    summed.assign(values);
    averaged.assign_add(values);
    first.assign_sub(values);
  });
  const auto n = static_cast<float>(n_);
  const float ids = n * (n - 1) / 2;
  EXPECT_EQ(summed.pull(), (Floats{ids + 10 * n, n, 2 * n, 3 * n, 4 * n, 5 * n, 6 * n, 7 * n}));
  EXPECT_EQ(averaged.pull(), (Floats{1 + ids / n + 10, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(first.pull(), (Floats{-9, 0, -1, -2, -3, -4, -5, -6}));
  const auto assign = [&] { strategy_.run([&] { none.assign(Floats(8, 3)); }); };
  if (n_ == 1) {
    assign();
    EXPECT_EQ(none.pull(), Floats(8, 3));
  } else {
    EXPECT_THAT(error_of(Code::invalid_argument, assign),
                HasSubstr("variable \"none\" is assigned by " + std::to_string(n_) +
                          " replicas and its aggregation is none"));
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, ReplicasConformance, testing::Values(Size{1, 1}, Size{2, 2}, Size{4, 3}));

Variable<double> summing(const std::string& name, const std::vector<std::int64_t>& shape, double start) {
  return {name, shape, initializers::constant(start), {optimizers::SGD{.learning_rate = -1}}};
}
void add(const Variable<double>& variable, double amount) {
  variable.push(std::vector<std::int64_t>{0}, std::vector<double>{amount});
}

// ---- run ----

std::tuple<double, double> plus_and_minus(double input, const Variable<double>& v) {
  return {input + v.pull()[0], input - v.pull()[0]};
}

// B41: same.
TEST_P(ReplicasConformance, RunWithoutScheduleWarnsAndRunsHere) {
  const auto scope = strategy_.scope();
  const auto v = summing("v", {1}, 1);
  strategy_.allow_run_without_coordinator(false);
  const LogText log;
  const auto results = strategy_.run(plus_and_minus, 1.0, v);
  for (const auto& result : results) EXPECT_EQ(result, std::make_tuple(2.0, 0.0));
  const std::string warning = "method is invoked without using ClusterCoordinator.schedule";
  EXPECT_EQ(count_of(warning, log.text()), 1);
  EXPECT_EQ(strategy_.reduce("sum", results), std::make_tuple(2.0 * n_, 0.0));
  strategy_.run([] {});
  EXPECT_EQ(count_of(warning, log.text()), 2);  // once for run, once for reduce
}

// B86: same.
TEST_P(ReplicasConformance, RunForATestDoesNotWarn) {
  const LogText log;
  EXPECT_EQ(strategy_.reduce(ReduceOp::SUM, strategy_.run([] { return 1; })), n_);
  EXPECT_EQ(log.text().find("ClusterCoordinator.schedule"), std::string::npos);
}

void set_to(const Variable<float>& v, float value) { v.assign(Floats{value}); }

// B42: same.
TEST_P(ReplicasConformance, ScheduledAssignments) {
  const auto scope = strategy_.scope();
  const Variable<float> v1("v1", {1});
  const Variable<float> v2("v2", {1});
  coordinator_.schedule<&set_to>(v1, 0.1F);
  coordinator_.schedule<&set_to>(v2, 0.8F);
  coordinator_.join();
  EXPECT_EQ(v1.pull(), Floats{0.1F});
  EXPECT_EQ(v2.pull(), Floats{0.8F});
}

std::tuple<double, double> run_and_reduce(double input, const Variable<double>& v) {
  const auto replicas = get_replicas();
  return replicas.reduce(ReduceOp::SUM, replicas.run(plus_and_minus, input, v));
}

// A4.1, B43: same.
TEST_P(ReplicasConformance, RunAndReduceInAScheduledFunction) {
  const auto scope = strategy_.scope();
  const auto v = summing("v", {1}, 1);
  const LogText log;
  const auto result = coordinator_.schedule<&run_and_reduce>(3.0, v);
  EXPECT_EQ(result.fetch(), std::make_tuple(4.0 * n_, 2.0 * n_));
  EXPECT_EQ(log.text().find("ClusterCoordinator.schedule"), std::string::npos);
}

std::vector<int> workers_of_replicas() {
  return get_replicas().run([] { return current_worker_index(); }).values;
}
void fail_on_a_replica(int bad) {
  get_replicas().run([bad](ReplicaContext& replica) {
    if (replica.replica_id_in_sync_group() == bad) throw Error(Code::data_loss, "a bad record");
    return replica.all_reduce(ReduceOp::SUM, 1);
  });
}

// A4.1: better: a replica's error ends the others and comes out of the closure, with its code.
TEST_P(ReplicasConformance, ErrorsOfReplicasAreTheClosures) {
  for (int bad = 0; bad < n_; ++bad) {
    const auto result = coordinator_.schedule<&fail_on_a_replica>(bad);
    EXPECT_EQ(error_of(Code::data_loss, [&] { coordinator_.join(); }), "a bad record");
    error_of(Code::data_loss, [&] { result.fetch(); });
  }
  const auto workers = coordinator_.schedule<&workers_of_replicas>().fetch();
  EXPECT_EQ(workers, std::vector<int>(static_cast<std::size_t>(n_), workers[0]));
}

// A4.1, B220: better: with one replica the result is a PerReplica, too, and converts to the value.
TEST_P(ReplicasConformance, RunGivesAPerReplica) {
  const auto doubled = strategy_.run([](double x) { return x * 2; }, everywhere(3.0));
  EXPECT_EQ(doubled, everywhere(6.0));
  if (n_ == 1) {
    const double plain = doubled;
    EXPECT_EQ(plain, 6.0);
  } else {
    error_of(Code::failed_precondition, [&] { static_cast<void>(doubled.value()); });
  }
}

// ---- reduce ----

// A4.2, B205: same.
TEST_P(ReplicasConformance, ReduceAcrossReplicas) {
  const auto ones = strategy_.run([] { return 1.0; });
  EXPECT_EQ(strategy_.reduce(ReduceOp::SUM, ones), n_);
  EXPECT_EQ(strategy_.reduce(ReduceOp::SUM, ones, std::nullopt), n_);
  EXPECT_EQ(strategy_.reduce(ReduceOp::MEAN, ones), 1.0);
  const auto ids =
      strategy_.run([](ReplicaContext& replica) { return replica.replica_id_in_sync_group() + 1; });
  const int sum = strategy_.reduce(ReduceOp::SUM, ids);
  EXPECT_EQ(sum, n_ * (n_ + 1) / 2);
  EXPECT_EQ(strategy_.reduce(ReduceOp::MEAN, ids), (n_ + 1) / 2.0);  // of integers: a double
  const auto arrays = everywhere(Array<float>({2, 2}, {1, 2, 3, 4}));
  EXPECT_EQ(strategy_.reduce("SUM", arrays).values[3], 4.F * static_cast<float>(n_));
  EXPECT_EQ(strategy_.reduce("mean", arrays), arrays[0]);
}

// A4.2, B206: same.
TEST_P(ReplicasConformance, ReduceAlongAnAxis) {
  const auto values = everywhere(Array<double>::vector({1, 2}));
  EXPECT_EQ(strategy_.reduce(ReduceOp::MEAN, values, 0), Array<double>::scalar(1.5));
  EXPECT_EQ(strategy_.reduce(ReduceOp::SUM, values, 0), Array<double>::scalar(3.0 * n_));
  const auto vectors = everywhere(std::vector<double>{1, 2});
  EXPECT_EQ(strategy_.reduce(ReduceOp::MEAN, vectors, -1), 1.5);
  EXPECT_EQ(strategy_.reduce(ReduceOp::SUM, vectors, 0), 3.0 * n_);
  EXPECT_EQ(strategy_.reduce(ReduceOp::SUM, std::vector<double>{1, 2}, 0),
            3.0 * n_);  // a plain value, everywhere
}

// A4.2: same.
TEST_P(ReplicasConformance, AMeanOverUnequalPartsIsExact) {
  const PerReplica<Array<std::int64_t>> parts{
      {Array<std::int64_t>::vector({0, 1, 2, 3}), Array<std::int64_t>::vector({4, 5})}};
  EXPECT_EQ(strategy_.reduce(ReduceOp::MEAN, parts, 0), Array<double>::scalar(2.5));
  EXPECT_EQ(strategy_.reduce(ReduceOp::SUM, parts, 0), Array<std::int64_t>::scalar(15));
  const PerReplica<std::vector<float>> with_empty{{{0, 1, 2, 3}, {}, {4, 5}}};
  EXPECT_EQ(strategy_.reduce("MEAN", with_empty, 0), 2.5F);
  const PerReplica<Array<double>> rows{{counted({3, 2}), counted({1, 2})}};  // columns 0+2+4+0 and 1+3+5+1
  EXPECT_EQ(strategy_.reduce(ReduceOp::MEAN, rows, 0), Array<double>::vector({6 / 4.0, 10 / 4.0}));
}

// A4.2: same.
TEST_P(ReplicasConformance, AxesAreOneOrSeveralFromEitherEnd) {
  const auto array = counted({2, 3, 4});
  const auto values = everywhere(array);
  const auto sum_of = [&](const Axes& axes) { return strategy_.reduce(ReduceOp::SUM, values, axes); };
  const auto check = [&](const Axes& axes, std::vector<bool> summed) {
    Shape shape;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (!summed[axis]) shape.push_back(array.shape[axis]);
    }
    Array<double> expected(shape);
    for (std::size_t i = 0; i < 24; ++i) {
      const std::size_t index[] = {i / 12, i / 4 % 3, i % 4};
      std::size_t at = 0;
      for (std::size_t axis = 0; axis < 3; ++axis) {
        if (!summed[axis]) at = at * static_cast<std::size_t>(array.shape[axis]) + index[axis];
      }
      expected.values[at] += array.values[i] * n_;
    }
    EXPECT_EQ(sum_of(axes), expected);
    const double count = 24.0 / static_cast<double>(expected.size()) * n_;
    for (double& value : expected.values) value /= count;
    EXPECT_EQ(strategy_.reduce(ReduceOp::MEAN, values, axes), expected);
  };
  check(0, {true, false, false});
  check(1, {false, true, false});
  check(-1, {false, false, true});
  check({0, 2}, {true, false, true});
  check(std::tuple{-1, 1}, {false, true, true});
  check(std::vector<std::int64_t>{2, 0, 1}, {true, true, true});
  check(std::tuple{}, {false, false, false});
}

// A4.2: same.
TEST_P(ReplicasConformance, AxesThatAreNotThereAreRefused) {
  const auto values = everywhere(counted({2, 3}));
  const auto refuse = [&](auto op, const Axes& axes) {
    return error_of(Code::invalid_argument, [&] { static_cast<void>(strategy_.reduce(op, values, axes)); });
  };
  EXPECT_EQ(refuse(ReduceOp::MEAN, 2), "`axis` = 2 out of range for `value` with rank 2");
  EXPECT_EQ(refuse(ReduceOp::MEAN, -3), "`axis` = -3 out of range for `value` with rank 2");
  EXPECT_EQ(refuse(ReduceOp::SUM, {0, 5}), "`axis` = 5 out of range for `value` with rank 2");
  EXPECT_EQ(refuse("sum", {1, -1}), "`axis` = -1 is named twice");
  EXPECT_EQ(error_of(Code::invalid_argument,
                     [&] { static_cast<void>(strategy_.reduce("MEAN", everywhere(1.0), 0)); }),
            "`axis` = 0 out of range for `value` with rank 0");
}

// A4.2: better: an axis that is no integer does not compile.
TEST_P(ReplicasConformance, AnAxisIsAnInteger) {
  static_assert(!std::is_convertible_v<double, Axes> && !std::is_convertible_v<bool, Axes>);
  static_assert(!std::is_convertible_v<std::string, Axes>);
  static_assert(std::is_convertible_v<int, Axes> && std::is_convertible_v<std::tuple<int, long>, Axes>);
}

// A4.2, B210: same.
TEST_P(ReplicasConformance, TheOperationIsAWordInAnyCase) {
  for (const char* word : {"sum", "SUM", "Sum"})
    EXPECT_EQ(strategy_.reduce(word, everywhere(2.0)), 2.0 * n_) << word;
  for (const std::string word : {"mean", "MEAN", "mEaN"}) {
    EXPECT_EQ(strategy_.reduce(word, everywhere(2.0)), 2.0) << word;
  }
  for (const char* word : {"", "max", "SUM ", "means"}) {
    EXPECT_EQ(
        error_of(Code::invalid_argument, [&] { static_cast<void>(strategy_.reduce(word, everywhere(2.0))); }),
        "reduce_op \"" + std::string(word) + "\" is neither SUM nor MEAN");
  }
  static_assert(std::is_same_v<decltype(strategy_.reduce("sum", everywhere(1))), double>);
  static_assert(std::is_same_v<decltype(strategy_.reduce(ReduceOp::SUM, everywhere(1))), int>);
}

// A4.2: same.
TEST_P(ReplicasConformance, PlainValuesAreTheSameEverywhere) {
  EXPECT_EQ(strategy_.reduce(ReduceOp::MEAN, 3.0), 3.0);
  EXPECT_EQ(strategy_.reduce(ReduceOp::SUM, 0), 0);
  if (n_ == 1) {
    EXPECT_EQ(strategy_.reduce(ReduceOp::SUM, 3.0), 3.0);
  } else {
    EXPECT_THAT(
        error_of(Code::invalid_argument, [&] { static_cast<void>(strategy_.reduce(ReduceOp::SUM, 3.0)); }),
        HasSubstr("a plain value"));
  }
}

// A4.2: same.
TEST_P(ReplicasConformance, ShapesOfReplicasMustFit) {
  const PerReplica<Array<float>> arrays{{Array<float>({2}), Array<float>({3})}};
  EXPECT_THAT(error_of(Code::invalid_argument, [&] { static_cast<void>(strategy_.reduce("sum", arrays)); }),
              HasSubstr("replica 1 is (3), that of replica 0 is (2)"));
  const PerReplica<Array<float>> rows{{Array<float>({2, 2}), Array<float>({2, 3})}};
  EXPECT_THAT(error_of(Code::invalid_argument, [&] { static_cast<void>(strategy_.reduce("sum", rows, 0)); }),
              HasSubstr("(3), that of replica 0 is (2)"));
  const PerReplica<std::map<int, int>> maps{{{{1, 1}}, {{2, 1}}}};
  EXPECT_THAT(
      error_of(Code::invalid_argument, [&] { static_cast<void>(strategy_.reduce(ReduceOp::SUM, maps)); }),
      HasSubstr("different keys"));
  error_of(Code::invalid_argument, [&] { static_cast<void>(strategy_.reduce("sum", PerReplica<float>{})); });
}

// A4.2: same.
TEST_P(ReplicasConformance, IntegersWrapAndSixteenBitsRoundOnce) {
  const PerReplica<std::int32_t> large{{2147483647, 1}};
  EXPECT_EQ(strategy_.reduce(ReduceOp::SUM, large), -2147483648);
  const PerReplica<std::int64_t> exact{{std::int64_t{1} << 60, 1}};
  EXPECT_EQ(strategy_.reduce(ReduceOp::SUM, exact), (std::int64_t{1} << 60) + 1);
  const PerReplica<float16> halves{{float16(2048), float16(1), float16(1)}};
  EXPECT_EQ(static_cast<float>(strategy_.reduce(ReduceOp::SUM, halves)),
            2050.F);  // 2048 + 1 alone would stay
  const PerReplica<std::vector<bfloat16>> brains{{{bfloat16(1), bfloat16(2)}, {bfloat16(3), bfloat16(4)}}};
  EXPECT_EQ(static_cast<float>(strategy_.reduce("mean", brains)[1]), 3.F);
}

// A4.2: same.
TEST_P(ReplicasConformance, ReduceIsNotForReplicas) {
  const auto inside = [&](const auto& call) {
    return error_of(Code::failed_precondition, [&] { strategy_.run([&] { call(); }); });
  };
  EXPECT_THAT(inside([&] { static_cast<void>(strategy_.reduce(ReduceOp::SUM, everywhere(1))); }),
              HasSubstr("reduce is called inside of run, by a replica"));
  EXPECT_THAT(inside([&] { static_cast<void>(strategy_.gather(everywhere(Floats{1}), 0)); }),
              HasSubstr("a replica has all_gather"));
  inside(
      [&] { static_cast<void>(strategy_.distribute_values_from_function([](ValueContext) { return 1; })); });
}

int reduce_to_worker(int worker) {
  const auto replicas = get_replicas();
  return replicas.reduce_to(ReduceOp::SUM, replicas.run([] { return 1; }), worker);
}
int reduce_to_own_worker() { return reduce_to_worker(current_worker_index()); }
int reduce_to_the_other_worker() { return reduce_to_worker(1 - current_worker_index()); }

// A2.20: same.
TEST_P(ReplicasConformance, ReduceToAnotherWorkerIsRefused) {
  EXPECT_EQ(coordinator_.schedule<&reduce_to_own_worker>().fetch(), n_);
  coordinator_.schedule<&reduce_to_the_other_worker>();
  EXPECT_THAT(error_of(Code::invalid_argument, [&] { coordinator_.join(); }),
              HasSubstr("Cannot reduce to another worker"));
}

// ---- gather ----

// A4.3, B211, B212, B219: same.
TEST_P(ReplicasConformance, GatherAlongAnyAxis) {
  EXPECT_EQ(strategy_.gather(everywhere(std::vector<int>{1, 2, 3}), 0).size(),
            static_cast<std::size_t>(3 * n_));
  const auto row = everywhere(Array<int>({1, 3}, {1, 2, 3}));
  EXPECT_EQ(strategy_.gather(row, 0).shape, (Shape{n_, 3}));
  EXPECT_EQ(strategy_.gather(row, 1).shape, (Shape{1, 3 * n_}));
  const PerReplica<Array<int>> columns{{Array<int>({2, 1}, {1, 2}), Array<int>({2, 1}, {1, 2})}};
  EXPECT_EQ(strategy_.gather(columns, 0), Array<int>({4, 1}, {1, 2, 1, 2}));
  const auto block = Array<int>({1, 2, 3}, {1, 2, 3, 4, 5, 6});
  const PerReplica<Array<int>> four{{block, block, block, block}};
  EXPECT_EQ(strategy_.gather(four, 0).shape, (Shape{4, 2, 3}));
  EXPECT_EQ(strategy_.gather(four, 1).shape, (Shape{1, 8, 3}));
  EXPECT_EQ(strategy_.gather(four, 2),
            Array<int>({1, 2, 12}, {1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6, 4, 5, 6, 4, 5, 6}));
  EXPECT_EQ(strategy_.gather(four, -1), strategy_.gather(four, 2));
  const PerReplica<Array<bool>> flags{{Array<bool>::vector({1, 0}), Array<bool>::vector({1})}};
  EXPECT_EQ(strategy_.gather(flags, 0), Array<bool>::vector({1, 0, 1}));
  const PerReplica<Array<int>> with_empty{{Array<int>(Shape{0, 2}), Array<int>({1, 2}, {7, 8})}};
  EXPECT_EQ(strategy_.gather(with_empty, 0), Array<int>({1, 2}, {7, 8}));
}

// A4.3, B215: same.
TEST_P(ReplicasConformance, GatherOnlyWhereShapesFit) {
  const PerReplica<Array<int>> uneven{{Array<int>({1, 2, 3}), Array<int>({1, 3, 3})}};
  EXPECT_EQ(strategy_.gather(uneven, 1).shape, (Shape{1, 5, 3}));
  for (const int axis : {0, 2}) {
    EXPECT_THAT(error_of(Code::invalid_argument, [&] { strategy_.gather(uneven, axis); }),
                HasSubstr("replica 1 has an array of shape (1, 3, 3), replica 0 of shape (1, 2, 3)"));
  }
  for (const int axis : {3, -4}) {
    EXPECT_THAT(error_of(Code::invalid_argument, [&] { strategy_.gather(uneven, axis); }),
                HasSubstr("out of range"));
  }
}

// A4.3, B216: same.
TEST_P(ReplicasConformance, GatherOfSparseGradientsIsNotSupported) {
  const auto sparse = everywhere(IndexedSlices<float>{{1}, {2}});
  EXPECT_EQ(error_of(Code::unimplemented, [&] { strategy_.gather(sparse, 0); }),
            "gather does not support IndexedSlices");
  EXPECT_EQ(error_of(Code::unimplemented,
                     [&] {
                       strategy_.run([](ReplicaContext& replica,
                                        const IndexedSlices<float>& mine) { replica.all_gather(mine, 0); },
                                     sparse);
                     }),
            "gather does not support IndexedSlices");
}

// A4.3, B217: same.
TEST_P(ReplicasConformance, GatherNeedsEqualRanksAboveZero) {
  const PerReplica<Array<int>> ranks{{Array<int>(Shape{1, 2}), Array<int>(Shape{2})}};
  EXPECT_THAT(error_of(Code::invalid_argument, [&] { strategy_.gather(ranks, 0); }),
              HasSubstr("ranks differ"));
  EXPECT_THAT(error_of(Code::invalid_argument, [&] { strategy_.gather(everywhere(Array<int>()), 0); }),
              HasSubstr("scalar"));
  EXPECT_THAT(error_of(Code::invalid_argument, [&] { strategy_.gather(everywhere(1.0), 0); }),
              HasSubstr("scalar"));
}

// A4.3, B218: same.
TEST_P(ReplicasConformance, AllGatherGivesEveryReplicaTheWhole) {
  using Nest = std::map<std::string, std::pair<Array<double>, std::vector<int>>>;
  const auto results = strategy_.run([](ReplicaContext& replica) {
    const int id = replica.replica_id_in_sync_group();
    return replica.all_gather(Nest{{"k", {Array<double>({id + 1, 2}, rows_of(id)), std::vector<int>{id}}}},
                              0);
  });
  std::vector<double> values;
  std::vector<int> ids;
  for (int id = 0; id < n_; ++id) {
    const auto mine = rows_of(id);
    values.insert(values.end(), mine.begin(), mine.end());
    ids.push_back(id);
  }
  const Array<double> whole({n_ * (n_ + 1) / 2, 2}, values);
  for (const Nest& nest : results) EXPECT_EQ(nest, (Nest{{"k", {whole, ids}}}));
  EXPECT_THAT(error_of(Code::invalid_argument,
                       [&] {
                         strategy_.run([](ReplicaContext& replica) {
                           replica.all_gather(Array<int>(Shape{1, 2}), 2);
                         });
                       }),
              HasSubstr("out of range"));
}

// ---- local results, values from a function ----

// A4.4: same.
TEST_P(ReplicasConformance, LocalResults) {
  EXPECT_EQ(strategy_.local_results(strategy_.run([] { return 5; })),
            std::vector<int>(static_cast<std::size_t>(n_), 5));
  EXPECT_EQ(strategy_.local_results(5), std::vector<int>{5});
}

// A4.6, B220: same.
TEST_P(ReplicasConformance, ValuesFromAFunction) {
  const auto constant = strategy_.distribute_values_from_function([](ValueContext) { return 1.0; });
  EXPECT_EQ(strategy_.local_results(constant), std::vector<double>(static_cast<std::size_t>(n_), 1.0));
  const std::vector<int> numbers{3, 2, 1, 0};
  const auto indexed = strategy_.distribute_values_from_function([&](ValueContext context) {
    return numbers[static_cast<std::size_t>(context.replica_id_in_sync_group)];
  });
  EXPECT_EQ(indexed.values, std::vector<int>(numbers.begin(), numbers.begin() + n_));
  const auto count = strategy_.distribute_values_from_function(
      [](ValueContext context) { return context.num_replicas_in_sync; });
  EXPECT_EQ(count, everywhere(n_));
}

// ---- the replica context ----

// A4.5, B185, B220: same.
TEST_P(ReplicasConformance, TheContextKnowsItsPlace) {
  EXPECT_EQ(strategy_.num_replicas_in_sync(), n_);
  const auto sums = strategy_.run([] {
    auto& replica = get_replica_context();
    EXPECT_EQ(replica.num_replicas_in_sync(), get_replicas().num_replicas_in_sync());
    return replica.all_reduce(ReduceOp::SUM, replica.replica_id_in_sync_group());
  });
  EXPECT_EQ(sums, everywhere(n_ * (n_ - 1) / 2));
}

struct Metrics {
  double loss = 0;
  Array<float> gradient;
  std::int64_t examples = 0;
};

// A4.5, B207: same.
TEST_P(ReplicasConformance, AllReduceOfWhateverIsBuiltOfNumbers) {
  using Nest = std::map<std::string, std::tuple<double, std::vector<float>, std::array<int, 2>>>;
  strategy_.run([n = n_](ReplicaContext& replica) {
    const Nest mine{{"a", {1.0, {1, 2}, {3, 4}}}, {"b", {2.0, {}, {5, 6}}}};
    const auto sum = replica.all_reduce(ReduceOp::SUM, mine);
    const float f = static_cast<float>(n);
    EXPECT_EQ(sum,
              (Nest{{"a", {1.0 * n, {f, 2 * f}, {3 * n, 4 * n}}}, {"b", {2.0 * n, {}, {5 * n, 6 * n}}}}));
    const auto mean = replica.all_reduce(ReduceOp::MEAN, mine);
    EXPECT_EQ(std::get<0>(mean.at("a")), 1.0);
    EXPECT_EQ(std::get<2>(mean.at("b")), (std::array<double, 2>{5, 6}));
    const auto along = replica.all_reduce(ReduceOp::MEAN, std::pair{Floats{1, 2}, counted({2, 2})}, 0);
    EXPECT_EQ(along.first, 1.5F);
    EXPECT_EQ(along.second, Array<double>::vector({1, 2}));

    const Metrics total = replica.all_reduce("sum", Metrics{0.5, Array<float>::vector({1, 2}), 10});
    EXPECT_EQ(total.loss, 0.5 * n);
    EXPECT_EQ(total.gradient.values[1], 2 * f);
    EXPECT_EQ(total.examples, 10 * n);
    EXPECT_THAT(error_of(Code::invalid_argument, [&] { replica.all_reduce(ReduceOp::MEAN, Metrics{}); }),
                HasSubstr("make the member a double"));
  });
}

// A4.5, B207: same.
TEST_P(ReplicasConformance, AllReduceOfSparseGradientsKeepsThemSparse) {
  strategy_.run([n = n_](ReplicaContext& replica) {
    const std::int64_t id = replica.replica_id_in_sync_group();
    const auto sum = replica.all_reduce(ReduceOp::SUM, IndexedSlices<float>{{id, 7}, {1, 2}});
    const auto mean = replica.all_reduce(ReduceOp::MEAN, IndexedSlices<float>{{id, 7}, {1, 2}});
    ASSERT_EQ(sum.ids.size(), static_cast<std::size_t>(2 * n));
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
      EXPECT_EQ(sum.ids[2 * i], static_cast<std::int64_t>(i));
      EXPECT_EQ(sum.ids[2 * i + 1], 7);
      EXPECT_EQ(sum.values[2 * i + 1], 2);
      EXPECT_EQ(mean.values[2 * i + 1], 2 / static_cast<float>(n));
    }
  });
}

double merged_push(const Variable<double>& v) {
  return get_replicas()
      .run([&](ReplicaContext& replica) {
        const double mine = replica.replica_id_in_sync_group() + 1;
        return replica.merge_call(
            [](Replicas& replicas, const Variable<double>& variable, const PerReplica<double>& all) {
              const double sum = replicas.reduce(ReduceOp::SUM, all);
              add(variable, sum);
              return sum;
            },
            v, mine);
      })
      .values.back();
}

// A4.5: same.
TEST_P(ReplicasConformance, MergeCallUpdatesOnceForAllReplicas) {
  const auto scope = strategy_.scope();
  const auto v = summing("v", {1}, 0);
  const double sum = n_ * (n_ + 1) / 2.0;
  EXPECT_EQ(coordinator_.schedule<&merged_push>(v).fetch(), sum);
  coordinator_.join();
  EXPECT_EQ(v.pull()[0], sum);
}

// ---- the first generation's calls ----

void increment(const Variable<double>& x, const Variable<double>& y, const Variable<double>& z) {
  get_replicas().run([&](ReplicaContext& replica) {
    add(x, 1);
    add(y, 1);
    replica.on_first_replica([&] { add(z, 1); });
  });
}

// A2.20, B193: same.
TEST_P(ReplicasConformance, SomeThingsAreDoneOnTheFirstReplicaOfEveryWorker) {
  const auto scope = strategy_.scope();
  const auto x = summing("x", {1}, 10);
  const auto y = summing("y", {1}, 20);
  const auto z = summing("z", {1}, 30);
  for (int worker = 0; worker < kWorkers; ++worker) coordinator_.schedule<&increment>(x, y, z);
  coordinator_.join();
  EXPECT_EQ(x.pull()[0], 10 + kWorkers * n_);
  EXPECT_EQ(y.pull()[0], 20 + kWorkers * n_);
  EXPECT_EQ(z.pull()[0], 30 + kWorkers);
}

std::int64_t count_step(const Counter& step) {
  return get_replicas()
      .run([&](ReplicaContext& replica) {
        return replica.on_first_replica([&] { return step.fetch_add(1); });
      })
      .values.back();
}

// B199: same.
TEST_P(ReplicasConformance, AGlobalStepIsCountedOnceAWorker) {
  const auto scope = strategy_.scope();
  const Counter step("global_step");
  for (int i = 0; i < 10; ++i) EXPECT_EQ(coordinator_.schedule<&count_step>(step).fetch(), i);
  EXPECT_EQ(step.value(), 10);
}

double loss_step(const Variable<double>& w) {
  const auto replicas = get_replicas();
  const auto losses = replicas.run([&](ReplicaContext& replica) {
    const double error = w.pull()[0] - 1;
    const double gradient = replica.all_reduce(ReduceOp::MEAN, 2 * error);
    replica.on_first_replica([&] { w.push_dense(std::vector<double>{gradient}); });
    return error * error;
  });
  return replicas.reduce(ReduceOp::MEAN, losses);
}

// B194: same.
TEST_P(ReplicasConformance, TheErrorDecreases) {
  const auto scope = strategy_.scope();
  const Variable<double> w("w", {1}, initializers::constant(5), {optimizers::SGD{.learning_rate = 0.05}});
  double before = 1e9;
  for (int step = 0; step < 10; ++step) {
    const double loss = coordinator_.schedule<&loss_step>(w).fetch();
    EXPECT_LT(loss, before);
    before = loss;
  }
  EXPECT_NEAR(w.pull()[0], 1 + 4 * std::pow(0.9, 10), 1e-12);
}

// A2.20: same.
TEST_P(ReplicasConformance, UpdatesTakeTheFirstReplicasValues) {
  const auto scope = strategy_.scope();
  const auto b = summing("b", {2}, 0);
  const auto a = summing("a", {2}, 0);
  const auto values =
      strategy_.run([](ReplicaContext& replica) { return 5.0 + replica.replica_id_in_sync_group(); });
  EXPECT_EQ(strategy_.update(
                b,
                [](const Variable<double>& v, double value) {
                  add(v, value);
                  return value;
                },
                values),
            5);
  b.flush();
  EXPECT_EQ(b.pull(), (std::vector<double>{5, 0}));
  EXPECT_EQ(strategy_.non_slot_devices(std::vector{b, a}).name(), "a");
  EXPECT_EQ(strategy_.update_non_slot([](double value) { return value; }, values), 5);
  error_of(Code::invalid_argument, [&] { strategy_.non_slot_devices(std::vector<Variable<double>>{}); });
}

// B200: same.
TEST_P(ReplicasConformance, InMultiWorkerMode) {
  EXPECT_FALSE(ranks_.cluster().embedded());
  EXPECT_EQ(ranks_.cluster().count(Role::worker), kWorkers);
}

// A4.15: same.
TEST_P(ReplicasConformance, LogicalDevicesAreOnTpusOnly) {
  const Array<float> array;
  for (const auto& error :
       {error_of(Code::unimplemented, [&] { strategy_.experimental_assign_to_logical_device(array, 0); }),
        error_of(Code::unimplemented, [&] { strategy_.experimental_replicate_to_logical_devices(array); }),
        error_of(Code::unimplemented, [&] {
          strategy_.experimental_split_to_logical_devices(array, {1, 2});
        })}) {
    EXPECT_THAT(error, HasSubstr("only on TPUs"));
  }
}

// ---- local mode and cluster specs ----

// A1.13: better: local mode has ps, workers and replicas as well, as threads of the one process.
TEST(LocalMode, OneProcessHasEveryRole) {
  Settings settings;
  for (const auto& [name, value] : {std::pair{"replicas", "2"}, {"heap-slab-bytes", "1MiB"}}) {
    settings.set_from_flag(name, value);
  }
  ParameterServerStrategy strategy(Cluster(cluster::Runtime::embedded_cluster(settings)));
  ClusterCoordinator coordinator(strategy);
  const auto scope = strategy.scope();
  const auto v = summing("v", {1}, 1);
  EXPECT_EQ(coordinator.schedule<&run_and_reduce>(3.0, v).fetch(), std::make_tuple(8.0, 4.0));
}

// A1.12, A1.13, B186-B188: same.
TEST(LocalMode, DevicesOfOneMachine) {
  const DevicePlan cpu = plan_devices();
  EXPECT_EQ(cpu.compute, std::vector<std::string>{"/device:CPU:0"});
  EXPECT_EQ(cpu.variable, std::vector<std::string>{"/device:CPU:0"});
  EXPECT_TRUE(cpu.chief);
  const DevicePlan one = plan_devices({}, {}, {}, 1);
  EXPECT_EQ(one.compute, std::vector<std::string>{"/device:GPU:0"});
  EXPECT_EQ(one.variable, std::vector<std::string>{"/device:GPU:0"});
  EXPECT_EQ(one.num_replicas_in_sync(), 1);
  const DevicePlan two = plan_devices({}, {}, {}, 2);
  EXPECT_EQ(two.compute, (std::vector<std::string>{"/device:GPU:0", "/device:GPU:1"}));
  EXPECT_EQ(two.variable, std::vector<std::string>{"/device:CPU:0"});
  EXPECT_EQ(two.num_replicas_in_sync(), 2);
}

const ClusterSpec kSpec{{{"chief", {"h0:1"}}, {"worker", {"h1:1", "h2:1"}}, {"ps", {"h3:1", "h4:1"}}}};
const ClusterSpec kWithoutChief{{{"worker", {"h1:1", "h2:1"}}, {"ps", {"h3:1"}}}};

// A1.12: same.
TEST(LocalMode, WorkersHaveTheSameNumberOfReplicas) {
  std::vector<cluster::Hello> hellos(4, {"node0", 1, 7, "ps=1 workers=0 evaluator=0", {}, {}, 2});
  EXPECT_EQ(cluster::make_members(hellos).size(), 4U);
  hellos[3].replicas = 4;
  EXPECT_THAT(error_of(Code::invalid_argument, [&] { static_cast<void>(cluster::make_members(hellos)); }),
              HasSubstr("Mismatched number of replicas per worker"));
}

// A1.12, A1.13: same.
TEST(ContribConstructor, NeedsATaskAndPs) {
  const DevicePlan plan = plan_devices(kSpec, "worker", 1, 2);
  EXPECT_EQ(plan.compute,
            (std::vector<std::string>{"/job:worker/task:1/device:GPU:0", "/job:worker/task:1/device:GPU:1"}));
  EXPECT_EQ(plan.variable, (std::vector<std::string>{"/job:ps/task:0", "/job:ps/task:1"}));
  EXPECT_FALSE(plan.chief);
  EXPECT_EQ(plan_devices(kSpec, "chief", 0).compute,
            std::vector<std::string>{"/job:chief/task:0/device:CPU:0"});
  const std::string both = "When `cluster_spec` is given, you must also specify `task_type` and `task_id`";
  EXPECT_EQ(error_of(Code::invalid_argument, [] { plan_devices(kSpec); }), both);
  EXPECT_EQ(error_of(Code::invalid_argument, [] { plan_devices(kSpec, "worker"); }), both);
  EXPECT_EQ(error_of(Code::invalid_argument, [] { plan_devices(kSpec, {}, 0); }), both);
  EXPECT_EQ(error_of(Code::invalid_argument,
                     [] {
                       plan_devices({{{"worker", {"h:1"}}}}, "worker", 0);
                     }),
            "The cluster spec needs to have `ps` jobs.");
}

// A1.11: same.
TEST(ClusterSpec, SaysWhoIsWho) {
  EXPECT_EQ(id_in_cluster(kSpec, "chief", 0), 0);
  EXPECT_EQ(id_in_cluster(kSpec, "worker", 1), 2);
  EXPECT_EQ(id_in_cluster(kWithoutChief, "worker", 1), 1);
  EXPECT_EQ(id_in_cluster(kSpec, "evaluator", 0), 0);
  EXPECT_EQ(worker_count(kSpec, "worker"), 3);
  EXPECT_EQ(worker_count(kSpec, "chief"), 3);
  EXPECT_EQ(worker_count(kWithoutChief, "worker"), 2);
  EXPECT_EQ(worker_count(kSpec, "evaluator"), 1);
  EXPECT_TRUE(is_chief(kSpec, "chief", 0));
  EXPECT_FALSE(is_chief(kSpec, "worker", 0));
  EXPECT_TRUE(is_chief(kWithoutChief, "worker", 0));
  EXPECT_FALSE(is_chief(kWithoutChief, "worker", 1));
  EXPECT_FALSE(is_chief(kSpec, "ps", 0));
  EXPECT_TRUE(is_chief(kSpec, "evaluator", 0));
}

// A1.11: same.
TEST(ClusterSpec, RefusesTasksThatItDoesNotHave) {
  const auto refused = [](const ClusterSpec& spec, const char* type, int id) {
    return error_of(Code::invalid_argument, [&] { static_cast<void>(id_in_cluster(spec, type, id)); });
  };
  EXPECT_EQ(refused(kSpec, "worker", 2), "The `task_id` 2 exceeds the maximum id of worker, 1");
  EXPECT_THAT(refused(kSpec, "worker", -1), HasSubstr("negative"));
  EXPECT_EQ(refused(kSpec, "ps", 0), "There is no id for task_type 'ps'");
  EXPECT_EQ(refused(kWithoutChief, "chief", 0), "`task_type` 'chief' not found in cluster_spec");
  EXPECT_THAT(refused(kSpec, "gpu", 0), HasSubstr("Unrecognized task_type \"gpu\""));
  EXPECT_THAT(refused({{{"boss", {"h:1"}}}}, "worker", 0), HasSubstr("Disallowed task type \"boss\""));
  EXPECT_THAT(refused({{{"chief", {"a:1", "b:1"}}}}, "chief", 0), HasSubstr("at most one 'chief' job"));
  EXPECT_THAT(error_of(Code::invalid_argument, [] { worker_count(kSpec, "ps"); }), HasSubstr("'ps'"));
}

}  // namespace
}  // namespace capstan
