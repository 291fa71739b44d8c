// variable_kinds_test.cpp -- cached reads, per-worker variables, static tables, and NaN in gradients.
//
// Comments such as "A2.16: better" compare with TensorFlow; docs/conformance.md lists them by number, or as
// "own" if TensorFlow has no such feature.
// Tests: src/strategy/caching_scope.cpp
// Tests: src/strategy/gradient_filter.cpp
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>

#include "capstan/array.hpp"
#include "capstan/coordinator.hpp"
#include "capstan/detail/caching_scope.hpp"
#include "capstan/per_worker.hpp"
#include "capstan/static_hash_table.hpp"
#include "support/expect_error.hpp"
#include "support/log_text.hpp"
#include "support/rank_threads.hpp"

namespace capstan {
namespace {

using Ids = std::vector<std::int64_t>;

/// A cluster of two workers and a parameterized number of ps, whose ranks are threads.
class VariableKinds : public testing::TestWithParam<int> {
 protected:
  static constexpr int kWorkers = 2;

  void start(const std::string& nan_gradients = "pass", StrategyOptions options = {}) {
    coordinator_.reset();
    strategy_.reset();
    ranks_.reset();
    ranks_ = std::make_unique<RankThreads>(
        RankThreadsOptions{.ranks = 1 + GetParam() + kWorkers,
                           .flags = {{"ps", std::to_string(GetParam())}, {"nan-gradients", nan_gradients}}});
    strategy_ = std::make_unique<ParameterServerStrategy>(ranks_->cluster(), std::move(options));
    coordinator_ = std::make_unique<ClusterCoordinator>(*strategy_);
  }
  void TearDown() override {
    coordinator_.reset();
    strategy_.reset();
    ranks_.reset();
  }

  ParameterServerStrategy& strategy() { return *strategy_; }
  ClusterCoordinator& coordinator() { return *coordinator_; }

 private:
  std::unique_ptr<RankThreads> ranks_;
  std::unique_ptr<ParameterServerStrategy> strategy_;
  std::unique_ptr<ClusterCoordinator> coordinator_;
};

// A2.16, B46: same.
TEST_P(VariableKinds, CachingScopeCachesTheFirstRead) {
  start();
  const auto scope = strategy().scope();
  const Variable<float> v("v", Array<float>::scalar(1));
  const auto read = [&] { return v.read().values[0]; };
  {
    const CachingScope caching;
    EXPECT_EQ(read(), 1);
    v.assign(std::vector<float>{5});
    EXPECT_EQ(read(), 1);
    EXPECT_EQ(v.pull(), std::vector<float>{1});
    v.assign_add(std::vector<float>{1});
    EXPECT_EQ(read(), 1);
  }
  EXPECT_EQ(read(), 6);
  {
    const CachingScope caching;
    EXPECT_EQ(read(), 6);
    v.assign(std::vector<float>{2});
    EXPECT_EQ(read(), 6);
    expect_error_naming(Code::invalid_argument, {"CachingScope"}, [] { const CachingScope inner; });
    EXPECT_EQ(read(), 6);  // the rejected scope has no effect
  }
  EXPECT_EQ(read(), 2);
}

// A2.16: better: only complete reads are cached; partial reads see all earlier pushes.
TEST_P(VariableKinds, CachesOnlyFullReads) {
  start("pass", {.variable_partitioner = FixedShardsPartitioner{2}});
  const auto scope = strategy().scope();
  const Variable<double> v("v", Shape{3, 2}, {}, {.optimizer = optimizers::SGD{.learning_rate = 1}});
  const Variable<double> other("other", Shape{1}, initializers::ones());
  const CachingScope caching;
  EXPECT_EQ(v.pull(), std::vector<double>(6, 0));
  v.push_dense(std::vector<double>(6, -1));
  v.flush();
  EXPECT_EQ(v.pull(), std::vector<double>(6, 0));
  EXPECT_EQ(v.lookup(Ids{2}).values, (std::vector<double>{1, 1}));
  EXPECT_EQ(v.at(-1), Array<double>({2}, {1, 1}));
  std::vector<double> all(6);
  v.pull(0, all);
  EXPECT_EQ(all, std::vector<double>(6, 1));
  EXPECT_EQ(other.pull(), std::vector<double>{1});  // each variable has its own first read
}

std::vector<float> read_twice_with_an_assignment(Variable<float> v) {
  const CachingScope caching;
  const float first = v.pull()[0];
  v.assign(std::vector<float>{first + 10});
  return {first, v.pull()[0]};
}
float read_once(Variable<float> v) { return v.pull()[0]; }

// A2.16: same.
TEST_P(VariableKinds, CacheBelongsToAWorkerAndEndsWithItsScope) {
  start();
  const auto scope = strategy().scope();
  const Variable<float> v("v", Array<float>::scalar(1));
  const CachingScope of_the_coordinator;
  EXPECT_EQ(v.pull()[0], 1);
  EXPECT_EQ(coordinator().schedule<&read_twice_with_an_assignment>(v).fetch(), (std::vector<float>{1, 1}));
  EXPECT_EQ(coordinator().schedule<&read_twice_with_an_assignment>(v).fetch(), (std::vector<float>{11, 11}));
  EXPECT_EQ(coordinator().schedule<&read_once>(v).fetch(), 21);
  EXPECT_EQ(v.pull()[0], 1);
}

using Sums = PerWorkerVariable<std::int64_t>;
std::int64_t count_one(Sums sums, std::int64_t amount) {
  sums.assign_add(std::vector<std::int64_t>{1, amount});
  return current_worker_index();
}

// A2.17: same.
TEST_P(VariableKinds, EachWorkerChangesItsOwnCopy) {
  start();
  const auto scope = strategy().scope();
  const Sums sums("sums", Array<std::int64_t>({2}, {100, 0}));
  EXPECT_EQ(sums.name(), "sums");
  EXPECT_EQ(sums.shape(), Shape{2});
  EXPECT_EQ(sums.read_all(coordinator()),
            (std::vector<Array<std::int64_t>>(kWorkers, Array<std::int64_t>({2}, {100, 0}))));
  std::vector<RemoteValue<std::int64_t>> ran;
  for (int i = 0; i < 40; ++i) ran.push_back(coordinator().schedule<&count_one>(sums, std::int64_t{i}));
  coordinator().join();
  std::vector<Array<std::int64_t>> expected(kWorkers, Array<std::int64_t>({2}, {100, 0}));
  for (int i = 0; i < 40; ++i) {
    auto& copy = expected[static_cast<std::size_t>(ran[static_cast<std::size_t>(i)].fetch())];
    copy.values[0] += 1;
    copy.values[1] += i;
  }
  EXPECT_EQ(sums.read_all(coordinator()), expected);
}

template <class T>
void change_copy(PerWorkerVariable<T> v) {
  const std::vector<Element<T>> ones(v.read().size(), static_cast<Element<T>>(1.0F));
  if constexpr (std::is_same_v<T, bool>) {
    v.assign(ones);
  } else {
    v.assign_add(ones).assign_add(ones).assign_sub(ones);
    v.values()[0] = static_cast<Element<T>>(7.0F);
  }
}
template <class T>
std::int64_t change_on_every_worker(ClusterCoordinator& coordinator, const PerWorkerVariable<T>& v) {
  std::int64_t ran = 0;
  for (int worker = 0; worker < 2; ++worker, ++ran) {
    coordinator.schedule_on<&change_copy<T>>(worker, v).fetch();
  }
  return ran;
}
void fill_with_own_index(const Partition& part, std::span<float> out) {
  EXPECT_EQ(part.partition_shape, part.shape);
  EXPECT_EQ(part.partition_offset, (Shape{0, 0}));
  std::fill(out.begin(), out.end(), static_cast<float>(current_worker_index()));
}

// A2.17: better: any dtype and rank, with the same initial values as other variables.
TEST_P(VariableKinds, PerWorkerVariablesOfEveryKind) {
  start();
  const auto scope = strategy().scope();
  const auto check = [&]<class T>(std::type_identity<T>) {
    const PerWorkerVariable<T> v(std::string(to_string(dtype_of<T>)), Shape{2, 2}, initializers::constant(0));
    EXPECT_EQ(change_on_every_worker(coordinator(), v), 2);
    std::vector<Element<T>> values(4, static_cast<Element<T>>(1.0F));
    if (!std::is_same_v<T, bool>) values[0] = static_cast<Element<T>>(7.0F);
    EXPECT_EQ(v.read_all(coordinator()), (std::vector<Array<T>>(2, Array<T>({2, 2}, values))))
        << to_string(dtype_of<T>);
  };
  check(std::type_identity<float>());
  check(std::type_identity<double>());
  check(std::type_identity<float16>());
  check(std::type_identity<bfloat16>());
  check(std::type_identity<std::int32_t>());
  check(std::type_identity<std::int64_t>());
  check(std::type_identity<bool>());

  const PerWorkerVariable<float> scalar("scalar", Shape{}, initializers::constant(3));
  EXPECT_EQ(scalar.read_all(coordinator()), (std::vector<Array<float>>(2, Array<float>::scalar(3))));
  const PerWorkerVariable<float> identity("identity", Shape{2, 2}, initializers::identity());
  EXPECT_EQ(identity.read_all(coordinator())[1], Array<float>({2, 2}, {1, 0, 0, 1}));
  const PerWorkerVariable<float> made("made", [] { return Array<float>::vector({1, 2}); });
  EXPECT_EQ(made.read_all(coordinator())[0], Array<float>::vector({1, 2}));
  const PerWorkerVariable<float> filled("filled", Shape{1, 2}, from_partitions<float, fill_with_own_index>());
  EXPECT_EQ(filled.read_all(coordinator())[1], Array<float>({1, 2}, {1, 1}));
  // The same random numbers as for a variable on the ps.
  const PerWorkerVariable<double> random("random", Shape{5}, initializers::normal(0, 1));
  EXPECT_EQ(random.read_all(coordinator())[0].values,
            Variable<double>("random", Shape{5}, initializers::normal(0, 1)).pull());
}

void assign_three(PerWorkerVariable<float> v) { v.assign(std::vector<float>{1, 2, 3}); }

// A2.17: better: each misuse is rejected by name.
TEST_P(VariableKinds, PerWorkerVariableIsUsableInClosuresOnly) {
  start();
  expect_error_naming(Code::failed_precondition, {"\"v\"", "strategy.scope()"},
                      [] { PerWorkerVariable<float>("v", Shape{2}); });
  const auto scope = strategy().scope();
  const PerWorkerVariable<float> v("v", Shape{2});
  const std::string here =
      "per-worker variable \"v\" has a copy on each worker and none on the coordinator: use it in scheduled "
      "functions, or gather with read_all";
  expect_error(Code::failed_precondition, here, [&] { (void)v.read(); });
  expect_error(Code::failed_precondition, here, [&] { v.assign(std::vector<float>{1, 2}); });
  expect_error(Code::failed_precondition, here, [&] { v.assign_add(std::vector<float>{1, 2}); });
  EXPECT_THAT(
      error_of(Code::invalid_argument, [&] { coordinator().schedule_on<&assign_three>(0, v).fetch(); }),
      testing::AllOf(testing::HasSubstr("assign of per-worker variable \"v\" of shape (2)"),
                     testing::HasSubstr("3 values")));
  expect_error_naming(Code::invalid_argument, {"\"w\"", "(2, 3)", "(3)"}, [] {
    PerWorkerVariable<float>("w", Shape{2, 3}, Array<float>::vector({1, 2, 3}));
  });
  expect_error_naming(Code::invalid_argument, {"\"w\"", "(-1)"},
                      [] { PerWorkerVariable<float>("w", Shape{-1}); });
  expect_error_naming(Code::invalid_argument, {"\"w\"", "shape"},
                      [] { PerWorkerVariable<float>("w", initializers::ones()); });
  EXPECT_TRUE(coordinator().done());  // none of these is an error of the job
}

using Words = StaticHashTable<std::string, std::int64_t>;
std::atomic<int> tables_copied{0};
std::vector<std::int64_t> look_words_up(const Words& words, const std::vector<std::string>& keys) {
  static thread_local const void* seen = nullptr;
  const void* copy = &words.default_value();
  if (std::exchange(seen, copy) != copy) ++tables_copied;
  return words.lookup(std::span<const std::string>(keys));
}

// A2.18: same.
TEST_P(VariableKinds, EachWorkerUsesItsOwnTable) {
  start();
  const auto scope = strategy().scope();
  const Words words("words", {"the", "cat", "sat", "the"}, {1, 2, 3, 1}, -1);
  EXPECT_EQ(words.size(), 3);
  EXPECT_EQ(words.lookup("cat"), 2);
  EXPECT_EQ(words.lookup("dog"), -1);
  tables_copied = 0;
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(
        coordinator()
            .schedule_on<&look_words_up>(i % kWorkers, words, std::vector<std::string>{"sat", "dog", "the"})
            .fetch(),
        (std::vector<std::int64_t>{3, -1, 1}));
  }
  EXPECT_EQ(tables_copied, kWorkers);  // created once on each worker
  const StaticHashTable<std::int64_t, bool> odd("odd", {1, 2, 3}, {1, 0, 1}, 0);
  EXPECT_EQ(odd.lookup(Array<std::int64_t>({2, 2}, {3, 2, 1, 0})), Array<bool>({2, 2}, {1, 0, 1, 0}));
  const StaticHashTable<std::int32_t, std::string> empty("empty", {}, {}, "none");
  EXPECT_EQ(empty.size(), 0);
  EXPECT_EQ(empty.lookup(5), "none");
}

// A2.18: better: a table that a worker cannot reach is rejected by name when it is scheduled.
TEST_P(VariableKinds, RejectsATableOutsideOfTheScope) {
  start();
  const Words words("words", {"the"}, {1}, -1);
  EXPECT_EQ(words.lookup("the"), 1);
  EXPECT_THAT(
      error_of(Code::failed_precondition,
               [&] { coordinator().schedule<&look_words_up>(words, std::vector<std::string>{"the"}); }),
      testing::HasSubstr("table \"words\""));
  EXPECT_THAT(error_of(Code::invalid_argument,
                       [] {
                         Words("t", {"a", "b"}, {1}, 0);
                       }),
              testing::HasSubstr("table \"t\": found 2 keys and 1 values"));
  EXPECT_THAT(error_of(Code::invalid_argument,
                       [] {
                         Words("t", {"a", "b", "a"}, {1, 2, 3}, 0);
                       }),
              testing::HasSubstr("table \"t\": key 2 "));
}

// A2.1: same.
TEST_P(VariableKinds, ScopesNestAndStrategiesDoNotMix) {
  start();
  RankThreads other_ranks({.ranks = 3, .flags = {{"ps", "1"}}});
  ParameterServerStrategy other(other_ranks.cluster());
  {
    const auto scope = strategy().scope();
    {
      const auto again = strategy().scope();
      EXPECT_FALSE(Variable<float>("inner", Shape{1}).on_coordinator());
    }
    EXPECT_FALSE(Variable<float>("outer", Shape{1}).on_coordinator());
    expect_error(Code::failed_precondition,
                 "mixing strategies: the scope of one cannot be opened inside the scope of another",
                 [&] { const auto mixed = other.scope(); });
    EXPECT_FALSE(Variable<float>("after", Shape{1}).on_coordinator());
  }
  EXPECT_TRUE(Variable<float>("outside", Shape{1}).on_coordinator());
  EXPECT_EQ(strategy().variables(), (std::vector<std::string>{"inner", "outer", "after"}));
}

// A2.5: better: with --log-level=debug, the placement of each shard is logged.
TEST_P(VariableKinds, LogsThePlacementOfShards) {
  start("pass", {.variable_partitioner = FixedShardsPartitioner{2}});
  const auto scope = strategy().scope();
  log::set_level("debug");
  const LogText log;
  const Variable<float> v("v", Shape{5, 2});
  log::set_level("info");
  EXPECT_THAT(log.text(), testing::HasSubstr("variable \"v/part_0\": shard 0 of 2, 3 rows on ps 0"));
  EXPECT_THAT(log.text(), testing::HasSubstr("variable \"v/part_1\": shard 1 of 2, 2 rows on ps " +
                                             std::to_string(1 % GetParam())));
}

// A2.12: same.
TEST_P(VariableKinds, AnyFunctionOfShapeAndDtypeIsAPartitioner) {
  const auto by_dtype = [](const auto& shape, DType dtype) {
    EXPECT_EQ(Shape(shape.begin(), shape.end()), (Shape{6, 2}));
    return Partitions({dtype == DType::float64 ? 3 : 2, 1});
  };
  start("pass", {.variable_partitioner = by_dtype});
  const auto scope = strategy().scope();
  EXPECT_EQ(Variable<double>("a", Shape{6, 2}).shards().size(), 3U);
  EXPECT_EQ(Variable<float>("b", Shape{6, 2}).shards().size(), 2U);
}

void add_one_often(Variable<std::int64_t> v, int times) {
  for (int i = 0; i < times; ++i) v.assign_add(std::vector<std::int64_t>(v.rows(), 1));
}

// A2.20: better: the ps that owns the rows applies an update, so no update of two workers is lost.
TEST_P(VariableKinds, UpdatesRunOnThePsOfTheVariable) {
  start("pass", {.variable_partitioner = FixedShardsPartitioner{3}});
  const auto scope = strategy().scope();
  const Variable<std::int64_t> v("v", Shape{7}, {}, {.optimizer = optimizers::SGD{1}});
  for (int i = 0; i < 4; ++i) coordinator().schedule<&add_one_often>(v, 50);
  coordinator().join();
  EXPECT_EQ(v.pull(), std::vector<std::int64_t>(7, 200));
}

// B183: same.
TEST_P(VariableKinds, VariableOfAScopeIsAssignableOutsideOfIt) {
  start();
  const auto v = [this] {
    const auto scope = strategy().scope();
    return Variable<float>("v", Array<float>::scalar(1));
  }();
  v.assign(std::vector<float>{3});
  EXPECT_EQ(v.read(), Array<float>::scalar(3));
}

void add_two(Variable<float> v) { v.assign_add(std::vector<float>{2}); }

// B184: same.
TEST_P(VariableKinds, VariableWithMeanAggregationTakesTheAssignmentOfASingleReplica) {
  start();
  const auto scope = strategy().scope();
  const Variable<float> v("v", Array<float>::scalar(1), {.aggregation = VariableAggregation::mean});
  coordinator().schedule<&add_two>(v);
  coordinator().join();
  EXPECT_EQ(v.read(), Array<float>::scalar(3));
}

template <class T>
constexpr T number(double value) {
  return static_cast<T>(static_cast<float>(value));
}
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kPositiveInfinity = std::numeric_limits<double>::infinity();

template <class T>
void expect_rows(const Variable<T>& v, const std::vector<double>& expected) {
  v.flush();
  std::vector<T> values;
  for (const double value : expected) values.push_back(number<T>(value));
  EXPECT_EQ(v.pull(), values) << to_string(v.dtype());
}
template <class T>
std::vector<T> numbers(const std::vector<double>& values) {
  std::vector<T> out;
  for (const double value : values) out.push_back(number<T>(value));
  return out;
}

template <class F>
void for_each_floating(const F& f) {
  f(std::type_identity<float>());
  f(std::type_identity<double>());
  f(std::type_identity<float16>());
  f(std::type_identity<bfloat16>());
}

const VariableOptions kPlainSgd{.optimizer = optimizers::SGD{.learning_rate = 1}};

// own: better: with --nan-gradients=refuse, gradients with NaN are rejected before anything is sent.
TEST_P(VariableKinds, RefusedGradientsSendNothing) {
  start("refuse", {.variable_partitioner = FixedShardsPartitioner{2}});
  const auto scope = strategy().scope();
  for_each_floating([&]<class T>(std::type_identity<T>) {
    const std::string name(to_string(dtype_of<T>));
    const Variable<T> v(name, Shape{4, 2}, {}, kPlainSgd);
    const Variable<T> w("w " + name, Shape{4, 2}, {}, kPlainSgd);
    const auto refused = [&](int row, int element, const char* what) {
      return "push to variable \"" + name + "\": element " + std::to_string(element) +
             " of the gradient of row " + std::to_string(row) + " is " + what +
             "; expected finite numbers (--nan-gradients=refuse)";
    };
    expect_error(Code::invalid_argument, refused(3, 1, "nan"), [&] {
      v.push(Ids{0, 3}, numbers<T>({1, 1, 1, kNan}));
    });
    expect_error(Code::invalid_argument, refused(0, 1, "nan"), [&] {
      v.push(Ids{0}, numbers<T>({1, -kNan}));  // the sign bit of NaN has no meaning
    });
    expect_error(Code::invalid_argument, refused(0, 0, "-inf"), [&] {
      v.push(Ids{0, 3}, numbers<T>({-kPositiveInfinity, 1, 1, 1}));
    });
    expect_error(Code::invalid_argument, refused(2, 0, "inf"), [&] {
      v.push_dense(numbers<T>({1, 1, 1, 1, kPositiveInfinity, 1, 1, 1}));
    });
    const Ids ids{1};
    const auto good = numbers<T>({1, 1}), bad = numbers<T>({kNan, 1});
    expect_error(Code::invalid_argument, refused(1, 0, "nan"), [&] {
      push_all(Push{w, ids, good}, Push{v, ids, bad});
    });
    expect_rows(v, std::vector<double>(8, 0));
    expect_rows(w, std::vector<double>(8, 0));
    v.push(Ids{3}, numbers<T>({-1, -2}));
    expect_rows(v, {0, 0, 0, 0, 0, 0, 1, 2});
  });
}

// own: better: with --nan-gradients=skip, rows with NaN are skipped, counted, and logged once.
TEST_P(VariableKinds, SkippedRowsAreCountedAndLoggedOnce) {
  start("skip", {.variable_partitioner = FixedShardsPartitioner{2}});
  const auto scope = strategy().scope();
  for_each_floating([&]<class T>(std::type_identity<T>) {
    const LogText log;
    const std::string name(to_string(dtype_of<T>));
    const Variable<T> v(name, Shape{4, 2}, {}, kPlainSgd);
    const Variable<T> w("w " + name, Shape{4, 2}, {}, kPlainSgd);
    v.push(Ids{3, 0, 2}, numbers<T>({-1, -2, kNan, 1, -3, -4}));
    expect_rows(v, {0, 0, 0, 0, 3, 4, 1, 2});
    EXPECT_EQ(v.skipped_rows(), 1U);
    v.push(Ids{1}, numbers<T>({1, -kPositiveInfinity}));  // all rows were skipped
    v.push_dense(numbers<T>({-1, -1, -1, -1, -1, -1, -1, kNan}));
    expect_rows(v, {0, 0, 0, 0, 3, 4, 1, 2});
    EXPECT_EQ(v.skipped_rows(), 6U);
    const Ids ids{1, 2};
    const auto good = numbers<T>({-1, -1, -2, -2}), half = numbers<T>({kNan, 1, -1, -1});
    push_all(Push{v, ids, half}, Push{w, ids, good});
    expect_rows(v, {0, 0, 0, 0, 4, 5, 1, 2});
    expect_rows(w, {0, 0, 1, 1, 2, 2, 0, 0});
    EXPECT_EQ(v.skipped_rows(), 7U);
    EXPECT_EQ(w.skipped_rows(), 0U);
    EXPECT_EQ(count_of("skipped 1 of", log.text()), 1) << log.text();
    EXPECT_THAT(log.text(), testing::HasSubstr("push to variable \"" + name + "\": skipped 1 of 3 rows"));
    // An invalid id is still an error.
    EXPECT_THROW(v.push(Ids{9}, numbers<T>({kNan, 1})), Error);
  });
  const Variable<std::int64_t> integers("integers", Shape{2}, {}, {.optimizer = optimizers::SGD{1}});
  integers.push(Ids{1}, std::vector<std::int64_t>{-4});
  integers.flush();
  EXPECT_EQ(integers.pull(), (std::vector<std::int64_t>{0, 4}));
}

// own: better: by default, gradients are sent unchecked, at no cost.
TEST_P(VariableKinds, GradientsAreUncheckedByDefault) {
  start();
  const auto scope = strategy().scope();
  const Variable<double> v("v", Shape{2}, {}, kPlainSgd);
  v.push(Ids{0, 1}, std::vector<double>{kNan, -kPositiveInfinity});
  v.flush();
  EXPECT_TRUE(std::isnan(v.pull()[0]));
  EXPECT_EQ(v.pull()[1], kPositiveInfinity);
  EXPECT_EQ(v.skipped_rows(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Clusters, VariableKinds, testing::Values(1, 2, 3),
                         [](const auto& cluster) { return std::to_string(cluster.param) + "_ps"; });

}  // namespace
}  // namespace capstan
