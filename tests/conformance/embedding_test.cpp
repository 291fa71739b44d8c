// embedding_test.cpp -- TensorFlow's cases of embedding lookups on sharded variables.
#include "capstan/embedding.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "capstan/checkpoint.hpp"
#include "capstan/coordinator.hpp"
#include "capstan/strategy.hpp"
#include "io/temporary_directory.hpp"
#include "strategy/strategy.hpp"
#include "support/counted_table.hpp"
#include "support/expect_error.hpp"
#include "support/rank_threads.hpp"

namespace capstan {
namespace {

using Ids = std::vector<std::int64_t>;

/// A job with a table of 5 rows (1, 2), (3, 4), ... in shards of 2, 2 and 1.
struct EmbeddingJob {
  explicit EmbeddingJob(int ps, std::int64_t shards = 3)
      : ranks({.ranks = 2 + ps, .flags = {{"ps", std::to_string(ps)}}}),
        strategy(ranks.cluster(), {.variable_partitioner = FixedShardsPartitioner{shards}}),
        table(variable("table", 5, 1)) {}

  Variable<float> variable(const std::string& name, std::int64_t rows, float first) {
    const auto scope = strategy.scope();
    Variable<float> v(name, Shape{rows, 2}, {}, {optimizers::SGD{.learning_rate = 1}});
    std::vector<float> values(v.rows() * v.width());
    std::iota(values.begin(), values.end(), first);
    v.assign(values);
    return v;
  }

  RankThreads ranks;
  ParameterServerStrategy strategy;
  Variable<float> table;
};

class Embedding : public testing::TestWithParam<int> {
 protected:
  EmbeddingJob job_{GetParam()};
  const Variable<float>& table_ = job_.table;
};

std::string embedding_ps(const testing::TestParamInfo<int>& info) {
  return "ps" + std::to_string(info.param);
}
INSTANTIATE_TEST_SUITE_P(Ps, Embedding, testing::Values(1, 2, 3), embedding_ps);

// A3.8, B150: same.
TEST_P(Embedding, LookupReturnsRowsInTheOrderOfIds) {
  ASSERT_EQ(job_.strategy.implementation().variables().all().back()->descriptor.shards.size(), 3U);
  EXPECT_EQ(embedding_lookup(table_, Ids{0, 3, 4}), Array<float>({3, 2}, {1, 2, 7, 8, 9, 10}));
  EXPECT_EQ(embedding_lookup(table_, Array<std::int64_t>({2, 2}, {4, 0, 0, 4})),
            Array<float>({2, 2, 2}, {9, 10, 1, 2, 1, 2, 9, 10}));
  EXPECT_EQ(embedding_lookup(table_, Ids{1}, 2.5), Array<float>({1, 2}, {1.5, 2}));
}

// A3.8, B88, B150: better: one read of the distinct rows, never of the table; invalid ids are rejected before
// anything is sent.
TEST_P(Embedding, ReadsEachNamedRowOnce) {
  const Counted<Variable<float>> counted{table_};
  (void)embedding_lookup(counted, Ids{3, 0, 3, 3, 0});
  EXPECT_EQ(counted.rows_read(), (Ids{3, 0}));
  EXPECT_EQ(counted.lookups(), 1);
  EXPECT_EQ(counted.pulls(), 0);
  for (const std::int64_t bad : {5, -1}) {
    expect_error(
        Code::out_of_range,
        "id " + std::to_string(bad) + " at position 2 is not in variable \"table\", which has rows 0 to 4",
        [&] {
          (void)embedding_lookup(counted, Ids{0, 1, bad});
        });
  }
  EXPECT_EQ(counted.lookups(), 1);
}

// A3.9, B150: same.
TEST_P(Embedding, SparseLookupComputesTheMean) {
  const auto rows = RaggedIds::from_pairs(Ids{0, 0, 1, 2}, Ids{0, 3, 4, 1}, 3);
  EXPECT_EQ(embedding_lookup_sparse(table_, rows), Array<float>({3, 2}, {4, 5, 9, 10, 3, 4}));
  EXPECT_EQ(embedding_lookup_sparse(table_, rows, Combiner::sum), Array<float>({3, 2}, {8, 10, 9, 10, 3, 4}));
  const auto weighted = RaggedIds::from_sparse({{3, 2}, {0, 0, 0, 1, 2, 0}}, Ids{0, 3, 1}, {3, 2},
                                               std::vector<double>{3, 4, 2});
  EXPECT_EQ(embedding_lookup_sparse(table_, weighted, Combiner::sum),
            Array<float>({3, 2}, {31, 38, 0, 0, 6, 8}));
  EXPECT_EQ(embedding_lookup_sparse(table_, weighted, Combiner::sqrtn),
            Array<float>({3, 2}, {31 / 5.F, 38 / 5.F, 0, 0, 3, 4}));
  EXPECT_EQ(embedding_lookup_sparse(table_, weighted),
            Array<float>({3, 2}, {31 / 7.F, 38 / 7.F, 0, 0, 3, 4}));
}

// A3.9, B150: same.
TEST_P(Embedding, SafeSparseLookupDropsInvalidIds) {
  const auto rows = RaggedIds::from_rows({{0, -1}, {}, {1, 2}}, {{1, 1}, {}, {1, -1}});
  EXPECT_EQ(safe_embedding_lookup_sparse(table_, rows), Array<float>({3, 2}, {1, 2, 0, 0, 3, 4}));
  EXPECT_EQ(safe_embedding_lookup_sparse(table_, rows, Combiner::mean, 4),
            Array<float>({3, 2}, {1, 2, 9, 10, 3, 4}));
}

// A3.8: same.
TEST_P(Embedding, AcceptsAListOfTables) {
  // Table t holds ids t, t + 5, t + 10; row of id i is (i, i + 0.5).
  std::vector<Variable<float>> tables;
  for (std::int64_t t = 0; t < 5; ++t) {
    tables.push_back(job_.variable("mod" + std::to_string(t), t < 3 ? 3 : 2, 0));
    std::vector<float> values;
    for (std::int64_t id = t; id < 13; id += 5) {
      values.push_back(static_cast<float>(id));
      values.push_back(static_cast<float>(id) + 0.5F);
    }
    tables.back().assign(values);
  }
  const TableList mod(tables);
  EXPECT_EQ(mod.shape(), (Shape{13, 2}));
  Ids ids{12, 0, 7, 7, 3};
  EXPECT_EQ(embedding_lookup(mod, ids), Array<float>({5, 2}, {12, 12.5, 0, 0.5, 7, 7.5, 7, 7.5, 3, 3.5}));
  const auto rows = RaggedIds::from_rows({{1, 11}, {}, {8}});
  EXPECT_EQ(embedding_lookup_sparse(mod, rows), Array<float>({3, 2}, {6, 6.5, 0, 0, 8, 8.5}));
  EXPECT_EQ(embedding_lookup(TableList(tables, PartitionStrategy::div), Ids{0, 1, 2, 3, 9, 11, 12}),
            Array<float>({7, 2}, {0, 0.5, 5, 5.5, 10, 10.5, 1, 1.5, 3, 3.5, 4, 4.5, 9, 9.5}));
  expect_error_naming(Code::out_of_range,
                      {"id 13", "mod0, mod1, mod2, mod3, mod4", "row 2 of \"mod3\"", "0 to 1"},
                      [&] { (void)embedding_lookup(mod, Ids{13}); });
  // A gradient is pushed to the tables of its rows.
  mod.push(embedding_lookup_sparse_gradient(mod, rows, Array<float>({3, 2}, {2, 4, 9, 9, 1, 1})));
  tables.front().flush();
  EXPECT_EQ(embedding_lookup(mod, Ids{1, 11, 8, 3}),
            Array<float>({4, 2}, {0, -0.5, 10, 9.5, 7, 7.5, 3, 3.5}));
}

// A3.12: better: gradients are computed for the complete variable; one push updates the rows on the ps that
// own them.
TEST_P(Embedding, GradientsApplyToTheCompleteVariable) {
  const auto rows = RaggedIds::from_rows({{0, 3}, {}, {3, 3}}, {{1, 3}, {}, {1, 1}});
  const Array<float> change({3, 2}, {4, 8, 100, 100, 1, 2});
  const IndexedSlices<float> slices = embedding_lookup_sparse_gradient(table_, rows, change);
  EXPECT_EQ(slices.ids, (Ids{0, 3}));
  EXPECT_EQ(slices.values, (std::vector<float>{1, 2, 4, 8}));
  table_.push(slices);
  table_.flush();
  EXPECT_EQ(table_.pull(), (std::vector<float>{0, 0, 3, 4, 5, 6, 3, 0, 9, 10}));
  table_.push(embedding_lookup_gradient(table_, Array<std::int64_t>::vector({4, 4}),
                                        Array<float>({2, 2}, {1, 0, 2, 5})));
  table_.flush();
  EXPECT_EQ(embedding_lookup(table_, Ids{4}), Array<float>({1, 2}, {6, 5}));
}

// B140: same.
TEST_P(Embedding, LookupIsUnchangedByACheckpoint) {
  const io::TemporaryDirectory directory;
  const Array<float> wanted({2, 2}, {7, 8, 5, 6});
  EXPECT_EQ(embedding_lookup(table_, Ids{3, 2}), wanted);
  CheckpointManager(job_.strategy, {.directory = directory.path()}).save(1);
  EXPECT_EQ(embedding_lookup(table_, Ids{3, 2}), wanted);
  EmbeddingJob other(4 - GetParam(), 2);
  other.table.assign(std::vector<float>(10));
  EXPECT_EQ(CheckpointManager(other.strategy, {.directory = directory.path()}).restore_latest(), 1);
  EXPECT_EQ(embedding_lookup(other.table, Ids{3, 2}), wanted);
}

std::vector<float> look_up_on_worker(Variable<float> table) {
  return safe_embedding_lookup_sparse(table, RaggedIds::from_rows({{0, -7, 3}, {4}})).values;
}

// A3.9, B150: same.
TEST_P(Embedding, WorksInAFunctionOnAWorker) {
  ClusterCoordinator coordinator(job_.strategy);
  EXPECT_EQ(coordinator.schedule<&look_up_on_worker>(table_).fetch(), (std::vector<float>{4, 5, 9, 10}));
}

}  // namespace
}  // namespace capstan
