// merge_changes_test.cpp -- merges the changes of two or three replicas by the variable's aggregation.
#include "strategy/merge_changes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "capstan/dtype.hpp"
#include "capstan/replica.hpp"
#include "capstan/strategy.hpp"
#include "support/expect_error.hpp"
#include "support/rank_threads.hpp"

namespace capstan::strategy {
namespace {

using protocol::RowOp;
using testing::HasSubstr;

protocol::VariableDescriptor variable_of(VariableAggregation aggregation, DType dtype = DType::float32) {
  protocol::VariableDescriptor variable;
  variable.name = "w";
  variable.dtype = dtype;
  variable.shape = {8, 2};
  variable.aggregation = aggregation;
  return variable;
}

template <class T>
RowChange change_of(RowOp op, const std::vector<T>& values, std::uint64_t first_row = 0) {
  return {op, /*scatter=*/false, {}, first_row, values.data(), values.size()};
}
template <class T>
RowChange scatter_of(RowOp op, const std::vector<std::int64_t>& ids, const std::vector<T>& values) {
  return {op, /*scatter=*/true, ids, 0, values.data(), values.size()};
}

/// Arguments of a call of `apply`.
template <class T>
struct Applied {
  RowChange change;
  std::vector<std::int64_t> ids;
  std::vector<T> values;

  std::function<void(const RowChange&)> note() {
    return [this](const RowChange& merged) {
      ++calls;
      EXPECT_FALSE(among_replicas()) << "it is applied on behalf of all replicas";
      change = merged;
      ids.assign(merged.ids.begin(), merged.ids.end());
      const auto* first = static_cast<const T*>(merged.values);
      values.assign(first, first + merged.elements);
    };
  }
  int calls = 0;
};

class MergeChangesTest : public testing::TestWithParam<int> {
 protected:
  MergeChangesTest() { strategy_.allow_run_without_coordinator(); }

  /// Runs body(replica) on every replica.
  void run(const std::function<void(int)>& body) {
    strategy_.run([&](ReplicaContext& replica) { body(replica.replica_id_in_sync_group()); });
  }
  /// Returns the error of a change that all replicas make. Expects that the change is not applied.
  std::string error_of_change(Code code, const protocol::VariableDescriptor& variable,
                              const RowChange& change) {
    std::atomic<int> applied = 0;
    std::string error = error_of(code, [&] {
      run([&](int) { merge_changes(variable, change, [&](const RowChange&) { ++applied; }); });
    });
    EXPECT_EQ(applied, 0);
    return error;
  }

  const int n_ = GetParam();
  RankThreads ranks_{
      {.ranks = 3, .flags = {{"ps", "1"}, {"replicas", std::to_string(n_)}, {"wait-timeout", "20s"}}}};
  ParameterServerStrategy strategy_{ranks_.cluster()};
};

INSTANTIATE_TEST_SUITE_P(Replicas, MergeChangesTest, testing::Values(2, 3));

TEST_P(MergeChangesTest, AppliesTheSumOfDenseChangesOnce) {
  Applied<float> applied;
  run([&](int id) {
    const std::vector<float> values{1, static_cast<float>(id), 10, 0.5F};
    merge_changes(variable_of(VariableAggregation::sum), change_of(RowOp::sub, values, 3), applied.note());
  });
  const auto n = static_cast<float>(n_);
  EXPECT_EQ(applied.calls, 1);
  EXPECT_EQ(applied.change.op, RowOp::sub);
  EXPECT_FALSE(applied.change.scatter);
  EXPECT_EQ(applied.change.first_row, 3U);
  EXPECT_EQ(applied.values, (std::vector<float>{n, n * (n - 1) / 2, 10 * n, n / 2}));
}

TEST_P(MergeChangesTest, DividesTheSumByTheReplicasForAMean) {
  Applied<double> applied;
  run([&](int id) {
    const std::vector<double> values{static_cast<double>(id), 6};
    merge_changes(variable_of(VariableAggregation::mean, DType::float64), change_of(RowOp::set, values),
                  applied.note());
  });
  EXPECT_EQ(applied.calls, 1);
  EXPECT_EQ(applied.values, (std::vector<double>{(n_ - 1) / 2.0, 6}));
}

TEST_P(MergeChangesTest, AppliesOnlyTheChangeOfReplicaZero) {
  for (const DType dtype : {DType::float32, DType::int32, DType::boolean}) {
    Applied<std::uint8_t> applied;
    run([&](int id) {
      // The changes may differ, since only that of replica 0 counts.
      const std::vector<std::uint8_t> values(static_cast<std::size_t>(id) + 2,
                                             static_cast<std::uint8_t>(id + 1));
      merge_changes(variable_of(VariableAggregation::only_first_replica, dtype),
                    change_of(RowOp::max, values, static_cast<std::uint64_t>(id) + 4), applied.note());
    });
    EXPECT_EQ(applied.calls, 1);
    EXPECT_EQ(applied.change.op, RowOp::max);
    EXPECT_EQ(applied.change.first_row, 4U);
    EXPECT_EQ(applied.values, (std::vector<std::uint8_t>{1, 1}));
  }
}

TEST_P(MergeChangesTest, JoinsScatteredRowsInTheOrderOfTheReplicas) {
  for (const bool mean : {false, true}) {
    Applied<float> applied;
    run([&](int id) {
      // Replica 1 scatters nothing.
      const std::vector<std::int64_t> ids =
          id == 1 ? std::vector<std::int64_t>{} : std::vector<std::int64_t>{7, id};
      const std::vector<float> values(2 * ids.size(), static_cast<float>(6 * (id + 1)));
      merge_changes(variable_of(mean ? VariableAggregation::mean : VariableAggregation::sum),
                    scatter_of(RowOp::add, ids, values), applied.note());
    });
    std::vector<std::int64_t> ids{7, 0};
    std::vector<float> values(4, 6);
    if (n_ == 3) {
      ids.insert(ids.end(), {7, 2});
      values.insert(values.end(), 4, 18);
    }
    for (float& value : values) value /= mean ? static_cast<float>(n_) : 1;
    EXPECT_EQ(applied.calls, 1);
    EXPECT_TRUE(applied.change.scatter);
    EXPECT_EQ(applied.ids, ids);
    EXPECT_EQ(applied.values, values);
  }
}

TEST_P(MergeChangesTest, RoundsTheSumOfHalvesOnce) {
  // 2048 + 1 is 2048 in float16, so a sum in float16 would stay at 2048.
  Applied<float16> applied;
  run([&](int id) {
    const std::vector<float16> values{static_cast<float16>(id == 0 ? 2048.F : n_ == 2 ? 2.F : 1.F)};
    merge_changes(variable_of(VariableAggregation::sum, DType::float16), change_of(RowOp::add, values),
                  applied.note());
  });
  ASSERT_EQ(applied.values.size(), 1U);
  EXPECT_EQ(static_cast<float>(applied.values[0]), 2050.F);
}

TEST_P(MergeChangesTest, WrapsAroundSumsOfIntegers) {
  Applied<std::int32_t> applied;
  run([&](int id) {
    const std::vector<std::int32_t> values{id == 0   ? std::numeric_limits<std::int32_t>::max()
                                           : id == 1 ? 1
                                                     : 0};
    merge_changes(variable_of(VariableAggregation::sum, DType::int32), change_of(RowOp::add, values),
                  applied.note());
  });
  EXPECT_EQ(applied.values, std::vector<std::int32_t>{std::numeric_limits<std::int32_t>::min()});
}

TEST_P(MergeChangesTest, RejectsDenseChangesOfDifferentRows) {
  const std::vector<float> values(4);
  for (const bool other_count : {false, true}) {
    const std::string error = error_of(Code::invalid_argument, [&] {
      run([&](int id) {
        RowChange change = change_of(RowOp::add, values, 2);
        if (id == 1 && other_count) change.elements = 2;
        if (id == 1 && !other_count) change.first_row = 6;
        merge_changes(variable_of(VariableAggregation::sum), change, [](const RowChange&) { ADD_FAILURE(); });
      });
    });
    for (const char* parameter : {"assign_add", "\"w\"", "replica 1", other_count ? "2" : "6"}) {
      EXPECT_THAT(error, HasSubstr(parameter));
    }
  }
}

TEST_P(MergeChangesTest, RejectsOperationsThatTheAggregationCannotMerge) {
  const std::vector<float> values(2);
  const std::vector<std::int64_t> ids{1};
  const auto rejected = [&](Code code, VariableAggregation aggregation, DType dtype,
                            const RowChange& change) {
    const std::string error = error_of_change(code, variable_of(aggregation, dtype), change);
    for (const std::string& parameter : {name_of(change.op, change.scatter), std::string("\"w\""),
                                         std::string(to_string(aggregation)), std::to_string(n_)}) {
      EXPECT_THAT(error, HasSubstr(parameter));
    }
  };
  const auto sum = VariableAggregation::sum;
  const auto mean = VariableAggregation::mean;
  const RowChange dense = change_of(RowOp::add, values);
  rejected(Code::invalid_argument, VariableAggregation::none, DType::float32, dense);
  rejected(Code::invalid_argument, sum, DType::boolean, dense);
  rejected(Code::invalid_argument, mean, DType::boolean, dense);
  rejected(Code::invalid_argument, mean, DType::int32, dense);
  rejected(Code::invalid_argument, mean, DType::int64, scatter_of(RowOp::add, ids, values));
  for (const RowOp op : {RowOp::set, RowOp::min, RowOp::max}) {
    rejected(Code::unimplemented, sum, DType::float32, scatter_of(op, ids, values));
    rejected(Code::unimplemented, mean, DType::float32, scatter_of(op, ids, values));
  }
}

TEST_P(MergeChangesTest, MergesEveryDenseOperationAndScatteredArithmetic) {
  const std::vector<float> values(2, 1);
  const std::vector<std::int64_t> ids{1};
  std::vector<RowChange> changes;
  for (const RowOp op :
       {RowOp::set, RowOp::add, RowOp::sub, RowOp::mul, RowOp::div, RowOp::min, RowOp::max}) {
    changes.push_back(change_of(op, values));
  }
  for (const RowOp op : {RowOp::add, RowOp::sub, RowOp::mul, RowOp::div}) {
    changes.push_back(scatter_of(op, ids, values));
  }
  for (const RowChange& change : changes) {
    Applied<float> applied;
    run([&](int) { merge_changes(variable_of(VariableAggregation::sum), change, applied.note()); });
    EXPECT_EQ(applied.calls, 1) << name_of(change.op, change.scatter);
    EXPECT_EQ(applied.change.op, change.op);
  }
}

TEST_P(MergeChangesTest, ThrowsTheErrorOfApplyOnEveryReplica) {
  const std::vector<float> values(2);
  std::atomic<int> thrown = 0;
  run([&](int) {
    const auto merge = [&] {
      merge_changes(variable_of(VariableAggregation::sum), change_of(RowOp::add, values),
                    [](const RowChange&) { throw Error(Code::unavailable, "the ps is dead"); });
    };
    if (error_of(Code::unavailable, merge) == "the ps is dead") ++thrown;
  });
  EXPECT_EQ(thrown, n_);
}

TEST_P(MergeChangesTest, CreatesAnObjectOnceForAllReplicas) {
  std::atomic<int> calls = 0;
  std::vector<std::shared_ptr<const void>> made(static_cast<std::size_t>(n_));
  run([&](int id) {
    made[static_cast<std::size_t>(id)] = make_once("make a number", [&, id]() -> std::shared_ptr<const void> {
      ++calls;
      EXPECT_FALSE(among_replicas());
      return std::make_shared<const int>(id);
    });
  });
  EXPECT_EQ(calls, 1);
  for (const auto& one : made) EXPECT_EQ(one, made[0]);
  EXPECT_EQ(*static_cast<const int*>(made[0].get()), 0) << "replica 0's function makes it";
}

TEST_P(MergeChangesTest, DistinguishesReplicasFromOtherThreads) {
  EXPECT_FALSE(among_replicas());
  require_one_thread("a counter");
  run([&](int) {
    EXPECT_TRUE(among_replicas());
    const std::string error = error_of(Code::failed_precondition, [] { require_one_thread("a counter"); });
    EXPECT_THAT(error, HasSubstr("a counter"));
    EXPECT_THAT(error, HasSubstr(std::to_string(n_)));
  });
  EXPECT_FALSE(among_replicas());
}

TEST(MergeChanges, SingleReplicaNeedsNoMerge) {
  const RankThreads ranks{{.ranks = 3, .flags = {{"ps", "1"}}}};
  ParameterServerStrategy strategy{ranks.cluster()};
  strategy.allow_run_without_coordinator();
  strategy.run([] {
    EXPECT_FALSE(among_replicas());
    require_one_thread("a counter");
  });
}

TEST(MergeChanges, NamesOperationsAsInTheApi) {
  EXPECT_EQ(name_of(RowOp::set, false), "assign");
  EXPECT_EQ(name_of(RowOp::add, false), "assign_add");
  EXPECT_EQ(name_of(RowOp::sub, false), "assign_sub");
  EXPECT_EQ(name_of(RowOp::set, true), "scatter_update");
  EXPECT_EQ(name_of(RowOp::add, true), "scatter_add");
  EXPECT_EQ(name_of(RowOp::sub, true), "scatter_sub");
  EXPECT_EQ(name_of(RowOp::mul, true), "scatter_mul");
  EXPECT_EQ(name_of(RowOp::div, true), "scatter_div");
  EXPECT_EQ(name_of(RowOp::min, true), "scatter_min");
  EXPECT_EQ(name_of(RowOp::max, true), "scatter_max");
}

}  // namespace
}  // namespace capstan::strategy
