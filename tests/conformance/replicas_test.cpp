// replicas_test.cpp -- run, assignments of replicas, and the replica context, as in TensorFlow's
// ParameterServerStrategy.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>

#include "conformance/replicas_fixture.hpp"
#include "support/log_text.hpp"
#include "support/names_all.hpp"
#include "support/poll.hpp"

namespace capstan {
namespace {

using testing::HasSubstr;

void create_in_run() {
  get_replicas().run([](ReplicaContext&) { Variable<float>("on a worker", {1}); });
}

INSTANTIATE_TEST_SUITE_P(Sizes, ReplicasConformance, kSizes);

// A2.13, A2.14, B91, B92, B184: same.
TEST_P(ReplicasConformance, AggregatesAssignmentsOfReplicasAndAssignsOnce) {
  const auto scope = strategy_.scope();
  const auto make = [](const std::string& name, VariableAggregation aggregation) {
    return Variable<float>(name, Shape{8}, initializers::constant(1), {.aggregation = aggregation});
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
                NamesAll({"assign", "variable \"none\"", std::to_string(n_) + " replicas", "sum", "mean"}));
  }
}

// A2.13, A2.14, A3.5: better: TensorFlow's variables for replicas have no scatter operations; these are
// combined like sparse updates of its mirrored variables.
TEST_P(ReplicasConformance, CombinesScatteredRowsOfReplicas) {
  const auto scope = strategy_.scope();
  const auto make = [](const std::string& name, VariableAggregation aggregation) {
    return Variable<float>(name, Shape{5, 2}, initializers::constant(8), {.aggregation = aggregation});
  };
  const auto summed = make("summed", VariableAggregation::sum);
  const auto averaged = make("averaged", VariableAggregation::mean);
  const auto first = make("first", VariableAggregation::only_first_replica);
  const auto product = make("product", VariableAggregation::sum);
  const auto quotient = make("quotient", VariableAggregation::sum);
  strategy_.run([&](ReplicaContext& replica) {
    const std::int64_t id = replica.replica_id_in_sync_group();
    const auto f = static_cast<float>(id + 1);
    // Replica 0 names only row 4; each other replica also names a row of its own.
    const Ids ids = id == 0 ? Ids{4} : Ids{id, 4};
    const Floats values = id == 0 ? Floats{f, 10 * f} : Floats{f, 10 * f, f, 10 * f};
    summed.scatter_add(ids, values);
    averaged.scatter_sub(ids, values);
    first.scatter_update(ids, values);
    first.scatter_max(Ids{0}, Floats{9 - f, f + 9});
    product.scatter_mul(Ids{3}, Floats{2, -1});
    quotient.scatter_div(Ids{3}, Floats{2, 1});
  });
  const auto n = static_cast<float>(n_);
  const float ids = n * (n + 1) / 2;
  Floats sums(10, 8), means(10, 8), products(10, 8), quotients(10, 8);
  for (int id = 1; id < n_; ++id) {
    const auto f = static_cast<float>(id + 1);
    const auto at = static_cast<std::size_t>(2 * id);
    sums[at] += f, sums[at + 1] += 10 * f;
    means[at] -= f / n, means[at + 1] -= 10 * f / n;
  }
  sums[8] += ids, sums[9] += 10 * ids;
  means[8] -= ids / n, means[9] -= 10 * ids / n;
  products[6] *= std::pow(2.F, n), products[7] *= std::pow(-1.F, n);
  quotients[6] /= std::pow(2.F, n);
  EXPECT_EQ(summed.pull(), sums);
  for (std::size_t i = 0; i < means.size(); ++i) EXPECT_FLOAT_EQ(averaged.pull()[i], means[i]) << i;
  EXPECT_EQ(first.pull(), (Floats{8, 10, 8, 8, 8, 8, 8, 8, 1, 10}));
  EXPECT_EQ(product.pull(), products);
  EXPECT_EQ(quotient.pull(), quotients);
}

// A2.13, A2.14: same.
TEST_P(ReplicasConformance, RejectsAssignmentsWithoutAggregationOnEveryReplica) {
  const auto scope = strategy_.scope();
  const Variable<float> none("none", Shape{4});
  const Variable<float> summed("summed", Shape{4}, {}, {.aggregation = VariableAggregation::sum});
  const Variable<std::int64_t> counts("counts", Shape{4}, {}, {.aggregation = VariableAggregation::mean});
  const Variable<bool> flags("flags", Shape{4}, {}, {.aggregation = VariableAggregation::sum});
  const auto refused = [&](Code code, std::vector<std::string> parameters,
                           const std::function<void()>& call) {
    if (n_ == 1) return strategy_.run(call);
    const std::string error = error_of(code, [&] { strategy_.run(call); });
    parameters.push_back(std::to_string(n_) + " replicas");
    EXPECT_THAT(error, NamesAll(parameters));
  };
  refused(Code::invalid_argument, {"scatter_add", "variable \"none\""},
          [&] { none.scatter_add(Ids{1}, Floats{1}); });
  for (const auto& call : std::vector<std::function<void()>>{
           [&] { summed.scatter_min(Ids{1}, Floats{1}); }, [&] { summed.scatter_max(Ids{1}, Floats{1}); },
           [&] { summed.scatter_update(Ids{1}, Floats{1}); }}) {
    refused(Code::unimplemented, {"variable \"summed\"", "add", "sub", "mul", "div"}, call);
  }
  refused(Code::invalid_argument, {"variable \"counts\"", "mean", "int64"},
          [&] { counts.assign(std::vector<std::int64_t>(4, 3)); });
  refused(Code::invalid_argument, {"variable \"flags\"", "sum"},
          [&] { flags.assign(std::vector<std::uint8_t>(4, 1)); });
  if (n_ > 1) {
    EXPECT_EQ(summed.pull(), Floats(4, 0));
    EXPECT_EQ(counts.pull(), std::vector<std::int64_t>(4, 0));
  }
}

// A2.13: better: replicas that are out of step get an error that names the variable and the replicas, and no
// replica waits forever.
TEST_P(ReplicasConformance, NamesReplicasThatAreOutOfStep) {
  if (n_ == 1) return;
  const auto scope = strategy_.scope();
  const Variable<float> w("w", Shape{4}, {}, {.aggregation = VariableAggregation::sum});
  const auto run = [&](Code code, const std::function<void(int)>& body) {
    return error_of(code, [&] {
      strategy_.run([&](ReplicaContext& replica) { body(replica.replica_id_in_sync_group()); });
    });
  };
  std::string aborted;
  EXPECT_EQ(run(Code::data_loss,
                [&](int id) {
                  if (id == 1) throw Error(Code::data_loss, "a bad record");
                  try {
                    w.assign_add(Floats(4, 1));
                  } catch (const Error& error) {
                    if (id == 0) aborted = error.what();
                    throw;
                  }
                }),
            "a bad record");
  EXPECT_THAT(aborted, NamesAll({"assign_add", "variable \"w\"", "replica 1"}));
  EXPECT_THAT(run(Code::failed_precondition,
                  [&](int id) {
                    if (id != 1) w.scatter_add(Ids{0}, Floats{1});
                  }),
              NamesAll({"scatter_add", "variable \"w\"", "replica 1", "returned"}));
  EXPECT_THAT(run(Code::failed_precondition,
                  [&](int id) {
                    if (id == 0) w.assign_add(Floats(4, 1));
                    if (id != 0) w.assign_sub(Floats(4, 1));
                  }),
              NamesAll({"replica 1", "assign_sub", "replica 0", "assign_add", "variable \"w\""}));
  EXPECT_EQ(
      run(Code::invalid_argument, [&](int id) { w.assign(Floats(id == 1 ? 2 : 1, 1), id == 1 ? 2 : 0); }),
      "assign of variable \"w\": replica 1 has 2 elements from row 2 on, replica 0 has 1 from row 0 on; "
      "the replicas must change the same rows");
  EXPECT_THAT(run(Code::out_of_range, [&](int id) { w.scatter_add(Ids{id + 4}, Floats{1}); }),
              NamesAll({"variable \"w\""}));
  EXPECT_EQ(w.pull(), Floats(4, 0));
  strategy_.run([&] { w.assign_add(Floats(4, 1)); });  // replicas work afterwards
  EXPECT_EQ(w.pull(), Floats(4, static_cast<float>(n_)));
}

// A2.13: better: a missing replica is named after a timeout.
TEST(Replicas, NamesReplicasThatHang) {
  const RankThreads ranks({.ranks = 3, .flags = {{"ps", "1"}, {"replicas", "2"}, {"wait-timeout", "1s"}}});
  ParameterServerStrategy strategy(ranks.cluster());
  strategy.allow_run_without_coordinator();
  const auto scope = strategy.scope();
  const Variable<float> w("w", Shape{4}, {}, {.aggregation = VariableAggregation::sum});
  std::string named;
  std::atomic<bool> gave_up{false};
  error_of(Code::deadline_exceeded, [&] {
    strategy.run([&](ReplicaContext& replica) {
      if (replica.replica_id_in_sync_group() == 1) {
        poll_until([&] { return gave_up.load(); });
        return;
      }
      named = error_of(Code::deadline_exceeded, [&] { w.assign(Floats(4, 1)); });
      gave_up = true;
      throw Error(Code::deadline_exceeded, named);
    });
  });
  EXPECT_EQ(named, "replica 0 has waited 1000 ms in assign of variable \"w\" for replica 1");
}

// A2.1, A2.13: better: several replicas may use a variable outside of any scope at the same time.
TEST_P(ReplicasConformance, VariablesOfTheCoordinatorAreShared) {
  const Variable<double> w("w", Shape{64, 8}, {}, {.optimizer = optimizers::SGD{.learning_rate = -1}});
  constexpr int kRounds = 200;
  strategy_.run([&](ReplicaContext& replica) {
    const Ids mine{replica.replica_id_in_sync_group(), 60};
    for (int round = 0; round < kRounds; ++round) {
      w.push(mine, std::vector<double>(16, 1));
      EXPECT_EQ(w.lookup(mine)[0][0], round + 1);
    }
  });
  EXPECT_EQ(w.lookup(Ids{60})[0][7], kRounds * n_);
}

// A2.1, A4.1: same.
TEST_P(ReplicasConformance, RunIsInTheScopeOfItsStrategy) {
  std::vector<std::optional<Variable<float>>> made(static_cast<std::size_t>(n_));
  strategy_.run([&](ReplicaContext& replica) {
    made[static_cast<std::size_t>(replica.replica_id_in_sync_group())].emplace(
        "in run", std::initializer_list<float>{1, 2});
  });
  for (const auto& v : made) {
    ASSERT_TRUE(v);
    EXPECT_FALSE(v->on_coordinator());
    EXPECT_TRUE(strategy_.variable_created_in_scope(*v));
    EXPECT_EQ(v->pull(), (Floats{1, 2}));
  }
  made.front()->assign({3, 4});
  EXPECT_EQ(made.back()->pull(), (Floats{3, 4}));
  EXPECT_EQ(strategy_.variables(), std::vector<std::string>{"in run"});
  EXPECT_TRUE(Variable<float>("after", {1}).on_coordinator());
}

// A2.1, A4.1: same.
TEST_P(ReplicasConformance, AllReplicasThrowTheErrorOfACreation) {
  const auto scope = strategy_.scope();
  const Variable<float> taken("taken", {1});
  std::atomic<int> refused = 0;
  strategy_.run([&](ReplicaContext&) {
    error_of(Code::already_exists, [] { Variable<float>("taken", {1}); });
    ++refused;
  });
  EXPECT_EQ(refused, n_);
  if (n_ == 1) return;
  EXPECT_THAT(
      error_of(Code::failed_precondition, [&] { strategy_.run([](ReplicaContext&) { Counter("c"); }); }),
      HasSubstr("counter \"c\""));
}

// A4.1: same.
TEST_P(ReplicasConformance, RejectsVariablesInAFunctionOnAWorker) {
  const auto value = coordinator_.schedule<&create_in_run>();
  error_of(Code::failed_precondition, [&] { coordinator_.join(); });
  error_of(Code::failed_precondition, [&] { value.fetch(); });
}

/// Calls all read functions of a variable and combines their results; equal on every replica.
auto reads_of(const Variable<double>& v, const StaticHashTable<std::string, std::int64_t>& table) {
  const Array<std::int64_t> ids({2, 2}, {5, 0, 6, 5});
  const RaggedIds ragged{.row_splits = {0, 2, 2, 3}, .ids = {6, 0, 3}};
  const CachingScope cached;
  EXPECT_EQ(v.pull(), v.pull());
  return std::tuple(v.read(), v.at(Slice{.start = -2, .step = -2}, ellipsis, 1), sparse_read(v, ids),
                    gather_nd(v, Array<std::int64_t>({2, 2}, {6, 1, 0, 0})), embedding_lookup(v, ids),
                    embedding_lookup_sparse(v, ragged, Combiner::sqrtn),
                    embedding_lookup_gradient(v, ids, embedding_lookup(v, ids)).values,
                    v.lookup(Ids{4, 4, 1}, ReadMode::consistent).values, table.lookup("b"));
}
using Table = StaticHashTable<std::string, std::int64_t>;
bool replicas_read_the_same(const Variable<double>& v, const Table& table) {
  const auto alone = reads_of(v, table);
  const auto all = get_replicas().run([&] { return reads_of(v, table) == alone; });
  return std::all_of(all.begin(), all.end(), [](bool same) { return same; });
}

// A2.16, A2.18, A3.3, A3.6-A3.9: same.
TEST_P(ReplicasConformance, ReadsOfReplicasEqualThoseOfOneThread) {
  const auto scope = strategy_.scope();
  const Variable<double> v("v", counted({7, 2}));
  const Table table("table", {"a", "b"}, {1, 2}, -1);
  EXPECT_EQ(std::get<2>(reads_of(v, table)).values, (std::vector<double>{10, 11, 0, 1, 12, 13, 10, 11}));
  EXPECT_TRUE(replicas_read_the_same(v, table));
  EXPECT_TRUE(coordinator_.schedule<&replicas_read_the_same>(v, table).fetch());
}

// A2.13, A3.4: same.
TEST_P(ReplicasConformance, PushesOfReplicasAreIndependent) {
  const auto scope = strategy_.scope();
  const auto v = summing("v", {6, 2}, 0);
  strategy_.run([&](ReplicaContext& replica) {
    const auto id = static_cast<double>(replica.replica_id_in_sync_group());
    for (int i = 0; i < 50; ++i)
      v.push(Ids{5, replica.replica_id_in_sync_group()}, std::vector<double>{1, 2, id, id});
    v.push_dense(std::vector<double>(12, 1));
    v.flush();
  });
  std::vector<double> expected(12, n_);
  for (int id = 0; id < n_; ++id) {
    expected[static_cast<std::size_t>(2 * id)] += 50 * id;
    expected[static_cast<std::size_t>(2 * id + 1)] += 50 * id;
  }
  expected[10] += 50 * n_, expected[11] += 100 * n_;
  EXPECT_EQ(v.pull(), expected);
}

// ---- run ----

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
  const Variable<float> v1("v1", Shape{1});
  const Variable<float> v2("v2", Shape{1});
  coordinator_.schedule<&set_to>(v1, 0.1F);
  coordinator_.schedule<&set_to>(v2, 0.8F);
  coordinator_.join();
  EXPECT_EQ(v1.pull(), Floats{0.1F});
  EXPECT_EQ(v2.pull(), Floats{0.8F});
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

// A4.1: better: the error of a replica ends the others and is thrown by the closure, with its code.
TEST_P(ReplicasConformance, ClosureThrowsTheErrorOfAReplica) {
  for (int bad = 0; bad < n_; ++bad) {
    const auto result = coordinator_.schedule<&fail_on_a_replica>(bad);
    EXPECT_EQ(error_of(Code::data_loss, [&] { coordinator_.join(); }), "a bad record");
    error_of(Code::data_loss, [&] { result.fetch(); });
  }
  const auto workers = coordinator_.schedule<&workers_of_replicas>().fetch();
  EXPECT_EQ(workers, std::vector<int>(static_cast<std::size_t>(n_), workers[0]));
}

// A4.1, B220: better: with one replica, the result is also a PerReplica, and converts to the value.
TEST_P(ReplicasConformance, RunReturnsAPerReplica) {
  const auto doubled = strategy_.run([](double x) { return x * 2; }, everywhere(3.0));
  EXPECT_EQ(doubled, everywhere(6.0));
  if (n_ == 1) {
    const double plain = doubled;
    EXPECT_EQ(plain, 6.0);
  } else {
    error_of(Code::failed_precondition, [&] { static_cast<void>(doubled.value()); });
  }
}

// ---- the replica context ----

// A4.5, B185, B220: same.
TEST_P(ReplicasConformance, ContextHasReplicaIdAndCount) {
  EXPECT_EQ(strategy_.num_replicas_in_sync(), n_);
  const auto sums = strategy_.run([] {
    auto& replica = get_replica_context();
    EXPECT_EQ(replica.num_replicas_in_sync(), get_replicas().num_replicas_in_sync());
    return replica.all_reduce(ReduceOp::SUM, replica.replica_id_in_sync_group());
  });
  EXPECT_EQ(sums, everywhere(n_ * (n_ - 1) / 2));
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

// ---- calls of TensorFlow's first generation ----

void increment(const Variable<double>& x, const Variable<double>& y, const Variable<double>& z) {
  get_replicas().run([&](ReplicaContext& replica) {
    add(x, 1);
    add(y, 1);
    replica.on_first_replica([&] { add(z, 1); });
  });
}

// A2.20, B193: same.
TEST_P(ReplicasConformance, FirstGenerationCallsRunOnTheFirstReplicaOfEveryWorker) {
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
TEST_P(ReplicasConformance, CountsAGlobalStepOncePerWorker) {
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
  const Variable<double> w("w", Shape{1}, initializers::constant(5),
                           {optimizers::SGD{.learning_rate = 0.05}});
  double before = 1e9;
  for (int step = 0; step < 10; ++step) {
    const double loss = coordinator_.schedule<&loss_step>(w).fetch();
    EXPECT_LT(loss, before);
    before = loss;
  }
  EXPECT_NEAR(w.pull()[0], 1 + 4 * std::pow(0.9, 10), 1e-12);
}

// A2.20: same.
TEST_P(ReplicasConformance, UpdateUsesValuesOfTheFirstReplica) {
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
TEST_P(ReplicasConformance, RejectsLogicalDevices) {
  const Array<float> array;
  for (const auto& error :
       {error_of(Code::unimplemented, [&] { strategy_.experimental_assign_to_logical_device(array, 0); }),
        error_of(Code::unimplemented, [&] { strategy_.experimental_replicate_to_logical_devices(array); }),
        error_of(Code::unimplemented, [&] {
          strategy_.experimental_split_to_logical_devices(array, {1, 2});
        })}) {
    EXPECT_THAT(error, NamesAll({"TPUs"}));
  }
}

}  // namespace
}  // namespace capstan
