// embedding_test.cpp -- lookups, combiners and gradients on tables in this process, ragged
// batches, and lists of tables.
// Tests: src/strategy/ragged_ids.cpp
// Tests: src/strategy/table_list.cpp
#include "capstan/embedding.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <set>

#include "support/counted_table.hpp"
#include "support/expect_error.hpp"

namespace capstan {
namespace {

using Ids = std::vector<std::int64_t>;
using Table = LocalTable<double>;
constexpr Combiner kCombiners[] = {Combiner::mean, Combiner::sum, Combiner::sqrtn};

RaggedIds batch_of(const std::vector<Ids>& ids, const std::vector<std::vector<double>>& weights = {}) {
  return RaggedIds::from_rows(ids, weights);
}

TEST(RaggedIds, RowsPairsAndSparseTensorsAreEquivalent) {
  const RaggedIds rows = batch_of({{}, {5, 1}, {}, {2}, {}}, {{}, {0.5, 2}, {}, {3}, {}});
  EXPECT_EQ(rows, (RaggedIds{{0, 0, 2, 2, 3, 3}, {5, 1, 2}, {0.5, 2, 3}}));
  EXPECT_EQ(rows.rows(), 5);
  EXPECT_EQ(RaggedIds::from_pairs(Ids{1, 1, 3}, Ids{5, 1, 2}, 5, std::vector<double>{0.5, 2, 3}), rows);
  EXPECT_EQ(RaggedIds::from_pairs(Ids{3, 1, 1}, Ids{2, 5, 1}, 5, std::vector<double>{3, 0.5, 2}), rows);
  EXPECT_EQ(RaggedIds::from_sparse({{3, 2}, {1, 0, 1, 4, 3, 0}}, Ids{5, 1, 2}, {5, 6},
                                   std::vector<double>{0.5, 2, 3}),
            rows);
  EXPECT_EQ(RaggedIds().rows(), 0);
  EXPECT_EQ(RaggedIds::from_pairs({}, {}, 2), (RaggedIds{{0, 0, 0}}));
  RaggedIds cube = RaggedIds::from_sparse({{3, 3}, {0, 1, 0, 1, 2, 3, 1, 2, 1}}, Ids{7, 8, 9}, {2, 3, 4});
  EXPECT_EQ(cube, (RaggedIds{.row_splits = {0, 0, 1, 1, 1, 1, 3}, .ids = {7, 8, 9}, .batch = {2, 3}}));
}

TEST(RaggedIds, RejectsInconsistentInput) {
  const auto expect = [](Code code, const std::string& text, const auto& call) {
    expect_error(code, "ragged ids: " + text, call);
  };
  const auto expect_check = [&](const std::string& text, const RaggedIds& batch) {
    expect(Code::invalid_argument, text, [&] { batch.check(); });
    expect(Code::invalid_argument, text, [&] { (void)batch.pruned(); });
  };
  expect_check("there are no row splits; expected one more than there are rows", {.row_splits = {}});
  expect_check("row splits go from 0 to 2; expected 0 to 3, the count of ids", {{0, 2}, {1, 2, 3}});
  expect_check("row splits go from 1 to 3; expected 0 to 3, the count of ids", {{1, 3}, {1, 2, 3}});
  expect_check("row split 2 is 1, less than the previous one, 2", {{0, 2, 1, 3}, {1, 2, 3}});
  expect_check("2 weights are given for 3 ids", {{0, 3}, {1, 2, 3}, {1, 1}});
  expect_check("a batch of shape (2, 2) is given for 1 rows",
               {.row_splits = {0, 1}, .ids = {1}, .batch = {2, 2}});
  expect(Code::invalid_argument, "1 rows of ids and 2 of weights", [] { (void)batch_of({{1}}, {{1}, {1}}); });
  expect(Code::invalid_argument, "row 0 has 2 ids and 1 weights", [] { (void)batch_of({{1, 2}}, {{1}}); });
  expect(Code::invalid_argument, "1 row indices, 2 ids and 0 weights", [] {
    (void)RaggedIds::from_pairs(Ids{0}, Ids{1, 2}, 3);
  });
  expect(Code::out_of_range, "id 9 at position 0 is of row 3; there are 3 rows",
         [] { (void)RaggedIds::from_pairs(Ids{3}, Ids{9}, 3); });
  expect(Code::out_of_range, "id 9 at position 0 has index 4 on axis 1, whose size is 4", [] {
    (void)RaggedIds::from_sparse({{1, 2}, {0, 4}}, Ids{9}, {3, 4});
  });
  expect(Code::invalid_argument, "indices of shape (2, 1) are given for 2 ids and 2 axes", [] {
    (void)RaggedIds::from_sparse({{2, 1}, {0, 1}}, Ids{1, 2}, {3, 4});
  });
  expect(Code::invalid_argument, "combiner 9; expected mean, sum or sqrtn",
         [] { (void)batch_of({{1}}).divisors(static_cast<Combiner>(9)); });
}

TEST(RaggedIds, PruningDropsIdsAndFillsEmptyRows) {
  const RaggedIds batch = batch_of({{0, -1}, {-3}, {4, 5, 6}, {}}, {{1, 1}, {1}, {0, -1, 2}, {}});
  EXPECT_EQ(batch.pruned(), batch_of({{0}, {}, {6}, {}}, {{1}, {}, {2}, {}}));
  EXPECT_EQ(batch.pruned(7), batch_of({{0}, {7}, {6}, {7}}, {{1}, {1}, {2}, {1}}));
  EXPECT_EQ(batch_of({{1, -1}, {}}).pruned(0), batch_of({{1}, {0}}));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(batch_of({{1, 2}}, {{nan, 1}}).pruned(), batch_of({{2}}, {{1}}));
}

TEST(EmbeddingLookup, FetchesRepeatedIdsOnce) {
  Counted<Table> table{Table(Shape{6, 2})};
  EXPECT_EQ(embedding_lookup(table, Ids{4, 1, 4, 4}), Array<double>({4, 2}, {9, 10, 3, 4, 9, 10, 9, 10}));
  EXPECT_EQ(table.rows_read(), (Ids{4, 1}));
  EXPECT_EQ(table.lookups(), 1);
  EXPECT_EQ(embedding_lookup(table, Array<std::int64_t>({1, 2}, {5, 0})).shape, (Shape{1, 2, 2}));
  EXPECT_EQ(embedding_lookup(table, Ids{}), Array<double>(Shape{0, 2}));
  EXPECT_EQ(table.lookups(), 2);
  EXPECT_EQ(embedding_lookup(LocalTable<std::int64_t>(Shape{3}), Ids{2, 2}),
            Array<std::int64_t>::vector({3, 3}));
}

TEST(EmbeddingLookup, DistinguishesManyIdsOfAllMagnitudes) {
  std::mt19937_64 random(5);
  for (const int shift : {0, 20, 32, 45}) {
    Ids ids(5000);
    for (auto& id : ids) id = static_cast<std::int64_t>(random() % 3000) << shift;
    const embedding::Distinct distinct(ids);
    EXPECT_EQ(std::set<std::int64_t>(distinct.ids.begin(), distinct.ids.end()).size(), distinct.ids.size());
    ASSERT_EQ(distinct.locations.size(), ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) ASSERT_EQ(distinct.ids[distinct.locations[i]], ids[i]);
  }
}

TEST(EmbeddingLookup, ReturnsRowsInTheOrderOfIds) {
  const Counted<Table> table{Table(Shape{300, 3})};
  std::mt19937_64 random(6);
  for (const std::size_t count : {1U, 2U, 10U, 299U, 2000U}) {
    Ids ids(count);
    for (auto& id : ids) id = static_cast<std::int64_t>(random() % 300);
    const Array<double> out = embedding_lookup(table, ids);
    ASSERT_EQ(out.shape, (Shape{static_cast<std::int64_t>(count), 3}));
    for (std::size_t i = 0; i < out.size(); ++i) {
      ASSERT_EQ(out.values[i], static_cast<double>(ids[i / 3] * 3 + 1) + static_cast<double>(i % 3));
    }
  }
}

TEST(EmbeddingLookup, ClipsRowsToANorm) {
  const Table table(Array<double>({3, 2}, {3, 4, 0.6, 0.8, 0, 0}));
  EXPECT_EQ(embedding_lookup(table, Ids{0, 1, 2}, 10), table.all());
  EXPECT_EQ(embedding_lookup(table, Ids{0, 2, 0}, 2.5), Array<double>({3, 2}, {1.5, 2, 0, 0, 1.5, 2}));
  EXPECT_EQ(embedding_lookup(table, Ids{0}, 0), Array<double>({1, 2}, {0, 0}));
  // The norm of a row covers all its axes.
  const LocalTable<float> cube(Array<float>({1, 2, 2}, {1, 1, 1, 1}));
  EXPECT_EQ(embedding_lookup(cube, Ids{0}, 1).values, std::vector<float>(4, 0.5F));
  const LocalTable<bfloat16> half(Array<bfloat16>({1, 2}, {bfloat16(30.F), bfloat16(40.F)}));
  EXPECT_EQ(embedding_lookup(half, Ids{0}, 5).values, (std::vector<bfloat16>{bfloat16(3.F), bfloat16(4.F)}));
}

TEST(EmbeddingLookup, RejectsInvalidIdsAndNormsBeforeReading) {
  const Counted<Table> table{Table(Shape{5, 2})};
  const auto expect = [&](Code code, const std::string& text, const auto& call) {
    expect_error(code, text, call);
    EXPECT_EQ(table.lookups(), 0);
  };
  for (const std::int64_t id : {std::int64_t{5}, std::int64_t{-1}}) {
    const std::string text =
        "id " + std::to_string(id) + " at position 1 is not in variable \"local\", which has rows 0 to 4";
    expect(Code::out_of_range, text, [&] { (void)embedding_lookup(table, Ids{0, id}); });
    expect(Code::out_of_range, text, [&] { (void)embedding_lookup_sparse(table, batch_of({{0}, {id}})); });
    expect(Code::out_of_range, text, [&] {
      (void)embedding_lookup_sparse_gradient(table, batch_of({{0}, {id}}), Array<double>(Shape{2, 2}));
    });
  }
  expect(Code::out_of_range, "id 5 at position 0 is not in variable \"local\", which has rows 0 to 4", [&] {
    (void)safe_embedding_lookup_sparse(table, batch_of({{-1, 5}}));
  });
  expect(Code::out_of_range, "id 7 at position 0 is not in variable \"local\", which has rows 0 to 4",
         [&] { (void)safe_embedding_lookup_sparse(table, batch_of({{}}), Combiner::mean, 7); });
  expect(Code::invalid_argument, "max_norm for variable \"local\" is -1; expected 0 or more",
         [&] { (void)embedding_lookup(table, Ids{0}, -1); });
  expect(Code::invalid_argument, "max_norm for variable \"local\" is nan; expected 0 or more",
         [&] { (void)embedding_lookup(table, Ids{0}, std::numeric_limits<double>::quiet_NaN()); });
  expect(Code::invalid_argument,
         "max_norm is given for variable \"local\", which is not of floating-point numbers",
         [&] { (void)embedding_lookup(LocalTable<std::int64_t>(Shape{3}), Ids{0}, 1); });
  expect(Code::invalid_argument,
         "a gradient of shape (3, 2) is given for a lookup in variable \"local\" of shape (1, 2)", [&] {
           (void)embedding_lookup_sparse_gradient(table, batch_of({{0}}), Array<double>(Shape{3, 2}));
         });
  expect(Code::invalid_argument, "variable \"local\" is a scalar, which has no rows",
         [&] { (void)embedding_lookup(Table(Shape{}), Ids{0}); });
}

TEST(EmbeddingLookupSparse, MatchesValuesComputedByHand) {
  const Counted<Table> table{Table(Shape{6, 2})};  // row i is (2 i + 1, 2 i + 2)
  const RaggedIds plain = batch_of({{0, 3, 0}, {}, {4}, {}});
  EXPECT_EQ(embedding_lookup_sparse(table, plain), Array<double>({4, 2}, {3, 4, 0, 0, 9, 10, 0, 0}));
  EXPECT_EQ(table.rows_read(), (Ids{0, 3, 4}));
  EXPECT_EQ(embedding_lookup_sparse(table, plain, Combiner::sum),
            Array<double>({4, 2}, {9, 12, 0, 0, 9, 10, 0, 0}));
  EXPECT_EQ(embedding_lookup_sparse(table, batch_of({{0, 3, 0, 1}}), Combiner::sqrtn),
            Array<double>({1, 2}, {6, 8}));
  const RaggedIds weighted = batch_of({{0, 3}, {5, 5}, {}}, {{3, 4}, {1, -1}, {}});
  EXPECT_EQ(embedding_lookup_sparse(table, weighted, Combiner::sum),
            Array<double>({3, 2}, {31, 38, 0, 0, 0, 0}));
  EXPECT_EQ(embedding_lookup_sparse(table, weighted),  // a sum of weights of 0 gives 0, not NaN
            Array<double>({3, 2}, {31.0 / 7, 38.0 / 7, 0, 0, 0, 0}));
  EXPECT_EQ(embedding_lookup_sparse(table, weighted, Combiner::sqrtn),
            Array<double>({3, 2}, {6.2, 7.6, 0, 0, 0, 0}));
  EXPECT_EQ(embedding_lookup_sparse(table, RaggedIds{}), Array<double>(Shape{0, 2}));
  const RaggedIds batch{.row_splits = {0, 1, 1, 2, 3}, .ids = {0, 1, 2}, .batch = {2, 2}};
  EXPECT_EQ(embedding_lookup_sparse(table, batch), Array<double>({2, 2, 2}, {1, 2, 0, 0, 3, 4, 5, 6}));
}

TEST(EmbeddingLookupSparse, ClipsEmbeddingsBeforeCombining) {
  const Table table(Array<double>({2, 2}, {3, 4, 0.6, 0.8}));
  EXPECT_EQ(embedding_lookup_sparse(table, batch_of({{0, 1}}, {{2, 1}}), Combiner::sum, 2.5),
            Array<double>({1, 2}, {3.6, 4.8}));
}

TEST(EmbeddingLookupSparse, SumsSixteenBitTablesInFloat) {
  // In float16, 2048 + 1 is 2048.
  const LocalTable<float16> table(Array<float16>({2, 1}, {float16(2048.F), float16(1.F)}));
  const auto sum = embedding_lookup_sparse(table, batch_of({{0, 1, 1}}), Combiner::sum);
  EXPECT_EQ(static_cast<float>(sum.values[0]), 2050.F);
}

TEST(SafeEmbeddingLookupSparse, CombinesTheIdsLeftAfterPruning) {
  const Table table(Shape{6, 2});
  const RaggedIds batch = batch_of({{0, -1}, {-1}, {1, 2}}, {{1, 1}, {1}, {1, -1}});
  EXPECT_EQ(safe_embedding_lookup_sparse(table, batch), Array<double>({3, 2}, {1, 2, 0, 0, 3, 4}));
  for (const Combiner combiner : kCombiners) {
    EXPECT_EQ(safe_embedding_lookup_sparse(table, batch, combiner, 5),
              Array<double>({3, 2}, {1, 2, 11, 12, 3, 4}));
  }
}

/// d(sum of out * gradient) / d(element), by central differences.
template <class Look>
std::vector<double> differences(Table table, const Array<double>& gradient, const Look& look) {
  const auto loss = [&] {
    const Array<double> out = look(table);
    EXPECT_EQ(out.shape, gradient.shape);
    double total = 0;
    for (std::size_t i = 0; i < out.size(); ++i) total += out.values[i] * gradient.values[i];
    return total;
  };
  constexpr double kStep = 1e-6;
  std::vector<double> out;
  for (double& element : table.all().values) {
    const double original = element;
    element = original + kStep;
    const double above = loss();
    element = original - kStep;
    out.push_back((above - loss()) / (2 * kStep));
    element = original;
  }
  return out;
}

std::vector<double> dense(const IndexedSlices<double>& slices, const Table& table) {
  std::vector<double> out(table.all().size());
  EXPECT_EQ(slices.values.size(), slices.ids.size() * table.width());
  std::set<std::int64_t> seen;
  for (std::size_t i = 0; i < slices.values.size(); ++i) {
    const auto row = static_cast<std::size_t>(slices.ids[i / table.width()]);
    seen.insert(slices.ids[i / table.width()]);
    out[row * table.width() + i % table.width()] += slices.values[i];
  }
  EXPECT_EQ(seen.size(), slices.ids.size()) << "an id occurs twice";
  return out;
}

Array<double> random_array(const Shape& shape, unsigned seed) {
  std::mt19937_64 random(seed);
  Array<double> out(shape);
  for (double& value : out.values) value = std::uniform_real_distribution<double>(-1, 1)(random);
  return out;
}

TEST(EmbeddingGradient, MatchesFiniteDifferences) {
  const Table table(random_array({6, 3}, 1));
  const Array<std::int64_t> ids({2, 2}, {4, 1, 4, 0});
  const RaggedIds plain = batch_of({{0, 3, 0}, {}, {4, 5}, {3}});
  const RaggedIds weighted = batch_of({{0, 3, 0}, {}, {4, 5}, {3, 3}}, {{0.5, 2, 1}, {}, {-1, 3}, {1, -1}});
  const RaggedIds outside = batch_of({{-1, 2}, {-4}, {4, 5}, {}}, {{1, 2}, {3}, {-1, 3}, {}});
  const Array<double> change = random_array({2, 2, 3}, 2);
  const Array<double> row_change = random_array({4, 3}, 3);
  const auto expect_near = [&](const IndexedSlices<double>& slices, const std::vector<double>& wanted) {
    EXPECT_THAT(dense(slices, table), testing::Pointwise(testing::DoubleNear(1e-8), wanted));
  };
  for (const std::optional<double> max_norm : {std::optional<double>(), std::optional<double>(1.0)}) {
    expect_near(
        embedding_lookup_gradient(table, ids, change, max_norm),
        differences(table, change, [&](const auto& t) { return embedding_lookup(t, ids, max_norm); }));
    for (const Combiner combiner : kCombiners) {
      for (const RaggedIds& batch : {plain, weighted}) {
        expect_near(embedding_lookup_sparse_gradient(table, batch, row_change, combiner, max_norm),
                    differences(table, row_change, [&](const auto& t) {
                      return embedding_lookup_sparse(t, batch, combiner, max_norm);
                    }));
      }
      expect_near(embedding_lookup_sparse_gradient(table, outside.pruned(1), row_change, combiner, max_norm),
                  differences(table, row_change, [&](const auto& t) {
                    return safe_embedding_lookup_sparse(t, outside, combiner, 1, max_norm);
                  }));
    }
  }
  double smallest = 1;
  double largest = 0;
  for (std::size_t row = 0; row < 6; ++row) {
    const double norm = l2_norm<double>(std::span(table.all().values).subspan(3 * row, 3));
    smallest = std::min(smallest, norm);
    largest = std::max(largest, norm);
  }
  EXPECT_LT(smallest, 1.0) << "some rows are clipped, some are not";
  EXPECT_GT(largest, 1.0);
}

TEST(TableMap, ModMatchesTensorFlow) {
  const std::vector<std::string> names{"a", "b", "c", "d", "e"};
  const TableMap mod(names, {{3, 2}, {3, 2}, {3, 2}, {2, 2}, {2, 2}}, PartitionStrategy::mod);
  EXPECT_EQ(mod.rows(), 13);
  EXPECT_EQ(mod.name(), "a, b, c, d, e");
  std::vector<Ids> tables(5);
  for (std::int64_t id = 0; id < 13; ++id) {
    const auto [table, row] = mod.location(id);
    EXPECT_EQ(row, static_cast<std::int64_t>(tables[table].size()));
    tables[table].push_back(id);
  }
  EXPECT_EQ(tables, (std::vector<Ids>{{0, 5, 10}, {1, 6, 11}, {2, 7, 12}, {3, 8}, {4, 9}}));
  const std::string tail = " is not in the tables a, b, c, d, e: ";
  expect_error(Code::out_of_range, "id 13" + tail + "it would be row 2 of \"d\", which has rows 0 to 1",
               [&] { (void)mod.location(13); });
  expect_error(Code::out_of_range, "id -1" + tail + "ids are 0 or more", [&] { (void)mod.location(-1); });
}

TEST(TableMap, DivConcatenatesTables) {
  const std::vector<std::string> names{"a", "b", "c", "d", "e"};
  const TableMap div(names, {{3}, {3}, {3}, {2}, {2}}, PartitionStrategy::div);
  // TensorFlow's formula for tables that are sized as "div" requires.
  for (std::int64_t id = 0; id < 13; ++id) {
    const std::int64_t base = 13 / 5;
    const std::int64_t extra = 13 % 5;
    const std::int64_t table = std::max(id / (base + 1), (id - extra) / base);
    const std::int64_t row = table < extra ? id % (base + 1) : (id - extra) % base;
    EXPECT_EQ(div.location(id), (TableMap::Location{static_cast<std::size_t>(table), row})) << id;
  }
  EXPECT_THROW((void)div.location(13), Error);
  EXPECT_THROW((void)div.location(-1), Error);
  const TableMap uneven({"a", "b", "c"}, {{1}, {0}, {4}}, PartitionStrategy::div);
  EXPECT_EQ(uneven.location(0), (TableMap::Location{0, 0}));
  EXPECT_EQ(uneven.location(1), (TableMap::Location{2, 0}));
  const auto parts = uneven.split(Ids{4, 0, 1});
  EXPECT_EQ(parts[0].rows, (Ids{0}));
  EXPECT_EQ(parts[1].rows, Ids{});
  EXPECT_EQ(parts[2].rows, (Ids{3, 0}));
  EXPECT_EQ(parts[2].positions, (std::vector<std::size_t>{0, 2}));
}

TEST(TableMap, RejectsIncompatibleTables) {
  expect_error(Code::invalid_argument, "the list of tables is empty; expected 1 or more",
               [] { TableMap({}, {}, PartitionStrategy::mod); });
  expect_error(
      Code::invalid_argument,
      "variable \"b\" has shape (3, 4) and variable \"a\" (3, 2): tables of one list have the same shapes "
      "except for axis 0",
      [] {
        TableMap({"a", "b"}, {{3, 2}, {3, 4}}, PartitionStrategy::mod);
      });
  expect_error(Code::invalid_argument, "variable \"a\" is a scalar, which has no rows",
               [] { TableMap({"a"}, {{}}, PartitionStrategy::mod); });
}

}  // namespace
}  // namespace capstan
