// reduce_gather_test.cpp -- combined values of all replicas: reduce, gather, all_reduce, all_gather.
// Tests: src/strategy/gather.cpp
// Tests: src/strategy/reduce_op.cpp
#include <gmock/gmock.h>

#include <map>

#include "conformance/replicas_fixture.hpp"
#include "support/names_all.hpp"

namespace capstan {
namespace {

using testing::HasSubstr;

/// Returns the elements of an array of shape (id + 1, 2), which differ between replicas.
std::vector<double> rows_of(int id) {
  return std::vector<double>(static_cast<std::size_t>(2 * (id + 1)), id);
}

class ReduceConformance : public ReplicasConformance {};
INSTANTIATE_TEST_SUITE_P(Sizes, ReduceConformance, kSizes);

// ---- reduce ----

// A4.2, B205: same.
TEST_P(ReduceConformance, ReduceAcrossReplicas) {
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
TEST_P(ReduceConformance, ReduceAlongAnAxis) {
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
TEST_P(ReduceConformance, MeanOverUnequalPartsIsExact) {
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
TEST_P(ReduceConformance, AcceptsSeveralAndNegativeAxes) {
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
TEST_P(ReduceConformance, RejectsInvalidAxes) {
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

// A4.2: better: an axis that is not an integer does not compile.
TEST_P(ReduceConformance, AxisIsAnInteger) {
  static_assert(!std::is_convertible_v<double, Axes> && !std::is_convertible_v<bool, Axes>);
  static_assert(!std::is_convertible_v<std::string, Axes>);
  static_assert(std::is_convertible_v<int, Axes> && std::is_convertible_v<std::tuple<int, long>, Axes>);
}

// A4.2, B210: same.
TEST_P(ReduceConformance, OperationIsCaseInsensitive) {
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
TEST_P(ReduceConformance, AcceptsPlainValues) {
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
TEST_P(ReduceConformance, ShapesOfReplicasMustFit) {
  const PerReplica<Array<float>> arrays{{Array<float>(Shape{2}), Array<float>(Shape{3})}};
  EXPECT_THAT(error_of(Code::invalid_argument, [&] { static_cast<void>(strategy_.reduce("sum", arrays)); }),
              NamesAll({"replica 1", "(3)", "(2)"}));
  const PerReplica<Array<float>> rows{{Array<float>(Shape{2, 2}), Array<float>(Shape{2, 3})}};
  EXPECT_THAT(error_of(Code::invalid_argument, [&] { static_cast<void>(strategy_.reduce("sum", rows, 0)); }),
              NamesAll({"(3)", "(2)"}));
  const PerReplica<std::map<int, int>> maps{{{{1, 1}}, {{2, 1}}}};
  EXPECT_THAT(
      error_of(Code::invalid_argument, [&] { static_cast<void>(strategy_.reduce(ReduceOp::SUM, maps)); }),
      HasSubstr("different keys"));
  error_of(Code::invalid_argument, [&] { static_cast<void>(strategy_.reduce("sum", PerReplica<float>{})); });
}

// A4.2: same.
TEST_P(ReduceConformance, IntegersWrapAndHalfTypesRoundOnce) {
  const PerReplica<std::int32_t> large{{2147483647, 1}};
  EXPECT_EQ(strategy_.reduce(ReduceOp::SUM, large), -2147483648);
  const PerReplica<std::int64_t> exact{{std::int64_t{1} << 60, 1}};
  EXPECT_EQ(strategy_.reduce(ReduceOp::SUM, exact), (std::int64_t{1} << 60) + 1);
  const PerReplica<float16> halves{{float16(2048), float16(1), float16(1)}};
  EXPECT_EQ(static_cast<float>(strategy_.reduce(ReduceOp::SUM, halves)),
            2050.F);  // 2048 + 1 alone would stay 2048
  const PerReplica<std::vector<bfloat16>> brains{{{bfloat16(1), bfloat16(2)}, {bfloat16(3), bfloat16(4)}}};
  EXPECT_EQ(static_cast<float>(strategy_.reduce("mean", brains)[1]), 3.F);
}

// A4.2: same.
TEST_P(ReduceConformance, RejectsReduceInReplicaContext) {
  const auto inside = [&](const auto& call) {
    return error_of(Code::failed_precondition, [&] { strategy_.run([&] { call(); }); });
  };
  EXPECT_THAT(inside([&] { static_cast<void>(strategy_.reduce(ReduceOp::SUM, everywhere(1))); }),
              NamesAll({"reduce", "`run`"}));
  EXPECT_THAT(inside([&] { static_cast<void>(strategy_.gather(everywhere(Floats{1}), 0)); }),
              NamesAll({"gather", "all_gather"}));
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
TEST_P(ReduceConformance, RejectsReduceToAnotherWorker) {
  EXPECT_EQ(coordinator_.schedule<&reduce_to_own_worker>().fetch(), n_);
  coordinator_.schedule<&reduce_to_the_other_worker>();
  EXPECT_THAT(error_of(Code::invalid_argument, [&] { coordinator_.join(); }),
              HasSubstr("Cannot reduce to another worker"));
}

// ---- gather ----

// A4.3, B211, B212, B219: same.
TEST_P(ReduceConformance, GatherAlongAnyAxis) {
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
  const PerReplica<std::vector<bool>> bits{{{true, false}, {}, {true}}};
  EXPECT_EQ(strategy_.gather(bits, 0), (std::vector<bool>{true, false, true}));
  const PerReplica<Array<int>> with_empty{{Array<int>(Shape{0, 2}), Array<int>({1, 2}, {7, 8})}};
  EXPECT_EQ(strategy_.gather(with_empty, 0), Array<int>({1, 2}, {7, 8}));
}

// A4.3, B215: same.
TEST_P(ReduceConformance, RejectsGatherOfShapesThatDoNotFit) {
  const PerReplica<Array<int>> uneven{{Array<int>(Shape{1, 2, 3}), Array<int>(Shape{1, 3, 3})}};
  EXPECT_EQ(strategy_.gather(uneven, 1).shape, (Shape{1, 5, 3}));
  for (const int axis : {0, 2}) {
    EXPECT_THAT(error_of(Code::invalid_argument, [&] { strategy_.gather(uneven, axis); }),
                NamesAll({"replica 1", "(1, 3, 3)", "replica 0", "(1, 2, 3)"}));
  }
  for (const int axis : {3, -4}) {
    EXPECT_THAT(error_of(Code::invalid_argument, [&] { strategy_.gather(uneven, axis); }),
                HasSubstr("out of range"));
  }
}

// A4.3, B216: same.
TEST_P(ReduceConformance, GatherOfSparseGradientsIsNotSupported) {
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
TEST_P(ReduceConformance, GatherNeedsEqualRanksAboveZero) {
  const PerReplica<Array<int>> ranks{{Array<int>(Shape{1, 2}), Array<int>(Shape{2})}};
  EXPECT_THAT(error_of(Code::invalid_argument, [&] { strategy_.gather(ranks, 0); }), HasSubstr("replica 1"));
  EXPECT_THAT(error_of(Code::invalid_argument, [&] { strategy_.gather(everywhere(Array<int>()), 0); }),
              HasSubstr("scalar"));
  EXPECT_THAT(error_of(Code::invalid_argument, [&] { strategy_.gather(everywhere(1.0), 0); }),
              HasSubstr("scalar"));
}

// A4.3, B218: same.
TEST_P(ReduceConformance, AllGatherReturnsTheCompleteArrayToEveryReplica) {
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
TEST_P(ReduceConformance, LocalResults) {
  EXPECT_EQ(strategy_.local_results(strategy_.run([] { return 5; })),
            std::vector<int>(static_cast<std::size_t>(n_), 5));
  EXPECT_EQ(strategy_.local_results(5), std::vector<int>{5});
}

// A4.6, B220: same.
TEST_P(ReduceConformance, ValuesFromAFunction) {
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

struct Metrics {
  double loss = 0;
  Array<float> gradient;
  std::int64_t examples = 0;
};

// A4.5, B207: same.
TEST_P(ReduceConformance, AllReduceOfNestedStructures) {
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
                NamesAll({"double"}));
  });
}

// A4.5, B207: same.
TEST_P(ReduceConformance, AllReduceOfSparseGradientsKeepsThemSparse) {
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

}  // namespace
}  // namespace capstan
