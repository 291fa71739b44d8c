// indexing_test.cpp -- TensorFlow's cases of partitioners, full reads, sparse reads and Python-style indexing
// of sharded variables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "capstan/array.hpp"
#include "capstan/coordinator.hpp"
#include "capstan/detail/slice.hpp"
#include "capstan/embedding.hpp"
#include "capstan/partitioners.hpp"
#include "capstan/strategy.hpp"
#include "capstan/variable.hpp"
#include "strategy/strategy.hpp"
#include "support/counted_table.hpp"
#include "support/expect_error.hpp"
#include "support/rank_threads.hpp"

namespace capstan {
namespace {

using Ids = std::vector<std::int64_t>;

template <class P>
std::int64_t shards(const P& partitioner, const Shape& shape, DType dtype = DType::float32) {
  return partitioner(shape, dtype);
}

// A2.9, B110: same.
TEST(Partitioners, FixedShards) {
  EXPECT_EQ(shards(FixedShardsPartitioner{2}, {10, 3}), 2);
  EXPECT_EQ(shards(FixedShardsPartitioner{7}, {3, 2}), 3);
  EXPECT_EQ(shards(FixedShardsPartitioner{2}, {0, 3}), 0);  // a strategy rejects this
  EXPECT_EQ(shards(FixedShardsPartitioner{5}, {}), 1);
}

// A2.10, B111-B112, B116: same.
TEST(Partitioners, MinSize) {
  EXPECT_EQ(shards(MinSizePartitioner{4, 2}, {6, 1}), 2);
  EXPECT_EQ(shards(MinSizePartitioner{4, 10}, {6, 1}), 6);
  for (const std::int64_t most : {16, 17, 1000}) {
    EXPECT_EQ(shards(MinSizePartitioner{256 << 10, most}, {1024, 1024}), 16);
  }
  EXPECT_EQ(shards(MinSizePartitioner{}, {1 << 20, 1024}), 1);  // the default of max_shards
  EXPECT_EQ(shards(MinSizePartitioner{40, 100}, {15}),
            2);  // 60 bytes: two shards of 0.75 times the minimum size
  EXPECT_EQ(shards(MinSizePartitioner{40, 100}, {15}, DType::int64), 3);
  EXPECT_EQ(shards(MinSizePartitioner{1, 8}, {0, 4}), 1);
  EXPECT_EQ(shards(MinSizePartitioner{1, 8}, {}), 1);
}

// A2.11, B113-B115: same.
TEST(Partitioners, MaxSize) {
  EXPECT_EQ(shards(MaxSizePartitioner{4}, {6, 1}), 6);
  EXPECT_EQ(shards(MaxSizePartitioner{4, 2}, {6, 1}), 2);
  EXPECT_EQ(shards(MaxSizePartitioner{1024}, {6, 1}), 1);
  EXPECT_EQ(shards(MaxSizePartitioner{8}, {7}), 4);
  EXPECT_EQ(shards(MaxSizePartitioner{11}, {7}), 4);         // two rows fit, not two and three quarters
  EXPECT_EQ(shards(MaxSizePartitioner{8}, {5, 100}), 5);     // a row exceeds the size of a shard
  EXPECT_EQ(shards(MaxSizePartitioner{8, 3}, {5, 100}), 3);  // max_shards takes precedence
  EXPECT_EQ(shards(MaxSizePartitioner{8}, {5}, DType::float64), 5);
  // TensorFlow divides by zero here.
  EXPECT_EQ(shards(MaxSizePartitioner{8}, {0, 4}), 1);
  EXPECT_EQ(shards(MaxSizePartitioner{8}, {4, 0}), 1);
  EXPECT_EQ(shards(MaxSizePartitioner{8}, {}), 1);
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(shards(MaxSizePartitioner{kMost}, {6}), 1);
  EXPECT_EQ(shards(MinSizePartitioner{kMost, kMost}, {6}), 1);
  EXPECT_EQ(shards(MinSizePartitioner{1, kMost}, {6}), 6);
}

// A2.9-A2.11: same.
TEST(Partitioners, RejectsArgumentsBelowOneByName) {
  const auto expect = [](const std::string& text, const auto& partitioner) {
    expect_error(Code::invalid_argument, text + "; it must be positive",
                 [&] { (void)shards(partitioner, {4}); });
  };
  expect("num_shards is 0", FixedShardsPartitioner{0});
  expect("num_shards is -1", FixedShardsPartitioner{-1});
  expect("min_shard_bytes is 0", MinSizePartitioner{0, 1});
  expect("max_shards is 0", MinSizePartitioner{1, 0});
  expect("max_shard_bytes is 0", MaxSizePartitioner{0});
  expect("max_shards is -7", MaxSizePartitioner{4, -7});
}

/// Variables in three shards on one, two or three ps.
class Indexing : public testing::TestWithParam<int> {
 protected:
  Indexing()
      : ranks_({.ranks = 2 + GetParam(), .flags = {{"ps", std::to_string(GetParam())}}}),
        strategy_(ranks_.cluster(), {.variable_partitioner = [this](auto shape, DType dtype) {
                    return partitioner_(shape, dtype);
                  }}) {}

  template <class T>
  Variable<T> variable(const Shape& shape, std::int64_t first = 1) {
    const auto scope = strategy_.scope();
    Variable<T> v("v" + std::to_string(made_++), shape, {}, {optimizers::SGD{.learning_rate = 1}});
    std::vector<T> values(v.rows() * v.width());
    std::iota(values.begin(), values.end(), static_cast<T>(first));
    v.assign(values);
    return v;
  }

  Partitioner partitioner_ = FixedShardsPartitioner{3};
  RankThreads ranks_;
  ParameterServerStrategy strategy_;
  int made_ = 0;
};

std::string ps_of(const testing::TestParamInfo<int>& info) { return "ps" + std::to_string(info.param); }
INSTANTIATE_TEST_SUITE_P(Ps, Indexing, testing::Values(1, 2, 3), ps_of);

/// Returns the rows with these ids; row k is (2 k + 1, 2 k + 2).
Array<float> rows(const Ids& ids) {
  std::vector<float> values;
  for (const std::int64_t id : ids) {
    values.push_back(static_cast<float>(2 * id + 1));
    values.push_back(static_cast<float>(2 * id + 2));
  }
  return {{static_cast<std::int64_t>(ids.size()), 2}, values};
}

// A2.8, B117-B118: same.
TEST_P(Indexing, DividesRowsInOrder) {
  const auto counts = [this](const Shape& shape, const Partitioner& partitioner) {
    partitioner_ = partitioner;
    const auto scope = strategy_.scope();
    const Variable<float> v("v" + std::to_string(made_++), shape);
    std::vector<std::uint64_t> out;
    std::uint64_t first = 0;
    for (const auto& place : strategy_.implementation().variables().all().back()->descriptor.shards) {
      EXPECT_EQ(place.first_row, first);
      first += place.rows;
      out.push_back(place.rows);
    }
    return out;
  };
  using testing::ElementsAre;
  EXPECT_THAT(counts({10}, FixedShardsPartitioner{4}), ElementsAre(3, 3, 2, 2));
  EXPECT_THAT(counts({13}, FixedShardsPartitioner{5}), ElementsAre(3, 3, 3, 2, 2));
  EXPECT_THAT(counts({5, 2}, FixedShardsPartitioner{2}), ElementsAre(3, 2));
  EXPECT_THAT(counts({32}, FixedShardsPartitioner{3}), ElementsAre(11, 11, 10));
  EXPECT_THAT(counts({1024, 1024}, MinSizePartitioner{256 << 10, 2}), ElementsAre(512, 512));
}

// A3.3, B134, B180: same.
TEST_P(Indexing, FullReadConcatenatesTheShards) {
  const auto v = variable<double>({4, 2}, 0);
  ASSERT_EQ(strategy_.implementation().variables().all().back()->descriptor.shards.size(), 3U);
  v.assign(std::vector<double>{0, 0, 1, 1, 2, 2, 3, 3});
  EXPECT_EQ(read_slice(v), Array<double>({4, 2}, {0, 0, 1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(v.pull(), (std::vector<double>{0, 0, 1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(read_slice(variable<float>({2})), Array<float>::vector({1, 2}));
}

// A3.3, B178: same.
TEST_P(Indexing, ReadReturnsAnArrayWithArithmetic) {
  const auto v = variable<float>({2});
  const Array<float> read = read_slice(v);
  EXPECT_EQ(equal(read, Array<float>::vector({1, 2})), Array<bool>::vector({1, 1}));
  EXPECT_TRUE(read == Array<float>::vector({1, 2}));  // the complete array
  EXPECT_EQ(read + read, Array<float>::vector({2, 4}));
  EXPECT_EQ(read - read * 3 / 2, Array<float>::vector({-0.5, -1}));
  EXPECT_EQ(read * Array<float>::vector({5, 7}), Array<float>::vector({5, 14}));
  EXPECT_EQ(Array<float>::scalar(8) / read, Array<float>::vector({8, 4}));
  const Array<bool> large = greater(read, Array<float>::scalar(1));
  EXPECT_EQ(read_slice(v, large), Array<float>::vector({2}));
  EXPECT_EQ(read_slice(v, !large), Array<float>::vector({1}));
  EXPECT_EQ(less(read, Array<float>::vector({2, 2})), Array<bool>::vector({1, 0}));
  EXPECT_THAT(error_of(Code::invalid_argument, [&] { (void)(read + Array<float>(Shape{3})); }),
              testing::HasSubstr("(2) and (3)"));
}

// A3.6, B132: better: rows have the order of the ids.
TEST_P(Indexing, SparseReadReturnsRowsInTheOrderOfIds) {
  const auto v = variable<float>({30}, 0);
  EXPECT_EQ(sparse_read(v, Ids{0, 10, 12, 21, 22}), Array<float>::vector({0, 10, 12, 21, 22}));
  EXPECT_EQ(sparse_read(v, Ids{22, 0, 12, 22, 10, 21}), Array<float>::vector({22, 0, 12, 22, 10, 21}));
  const auto table = variable<float>({8, 2});
  EXPECT_EQ(sparse_read(table, Ids{7, 3, 0, 3}), rows({7, 3, 0, 3}));
  EXPECT_EQ(sparse_read(table, Array<std::int64_t>({2, 1}, {6, 1})), Array<float>({2, 1, 2}, {13, 14, 3, 4}));
  EXPECT_EQ(sparse_read(table, Ids{}), rows({}));
  EXPECT_EQ(gather_nd(table, Array<std::int64_t>({2, 2}, {7, 1, 2, 0})), Array<float>::vector({16, 5}));
  for (const std::int64_t bad : {8, -1}) {
    try {
      (void)sparse_read(table, Ids{0, bad});
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::out_of_range);
      EXPECT_THAT(error.what(), testing::HasSubstr("id " + std::to_string(bad) + " at position 1"));
    }
  }
}

// A3.7, B151-B160: same.
TEST_P(Indexing, PositiveSteps) {
  const auto v = variable<float>({8, 2});
  const auto expect = [&](const Ids& wanted, const Slice& slice) {
    EXPECT_EQ(read_slice(v, slice), rows(wanted)) << testing::PrintToString(wanted);
  };
  expect({0, 1}, {.stop = 2});
  expect({0, 1}, {.start = -8, .stop = 2});
  expect({0, 1}, {.start = -10, .stop = 2});
  expect({5, 6, 7}, {.start = 5});
  expect({5, 6}, {.start = 5, .stop = -1});
  expect({0, 3, 6}, {.step = 3});
  expect({0, 5}, {.step = 5});
  expect({1, 7}, {.start = 1, .step = 6});
  expect({1}, {.start = 1, .stop = 5, .step = 6});
  expect({1}, {.start = 1, .step = 7});
  expect({2, 3, 4, 5, 6}, {.start = 2, .stop = 7});
  expect({2, 4, 6}, {.start = 2, .stop = 7, .step = 2});
  expect({2, 5}, {.start = 2, .stop = 7, .step = 3});
  expect({0, 1, 2, 3, 4, 5, 6, 7}, {});
}

// A3.7, B161-B175: same.
TEST_P(Indexing, NegativeStepsEmptySlicesAndOtherAxes) {
  const auto v = variable<float>({8, 2});
  const auto expect = [&](const Ids& wanted, const Slice& slice) {
    EXPECT_EQ(read_slice(v, slice), rows(wanted)) << testing::PrintToString(wanted);
  };
  expect({7, 6, 5, 4, 3, 2, 1, 0}, {.step = -1});
  expect({7, 4, 1}, {.step = -3});
  expect({7}, {.step = -9});
  expect({2, 1, 0}, {.start = 2, .step = -1});
  expect({7, 6}, {.stop = 5, .step = -1});
  expect({7, 6}, {.start = 100, .stop = -3, .step = -1});
  expect({5, 3}, {.start = -3, .stop = 1, .step = -2});
  expect({6, 5}, {.start = -2, .stop = -4, .step = -1});
  for (const Slice& empty :
       {Slice{.start = 3, .stop = 3}, Slice{.start = 8}, Slice{.stop = -8}, Slice{.stop = -9},
        Slice{.start = 5, .stop = 2}, Slice{.start = 2, .stop = 5, .step = -1}}) {
    expect({}, empty);
  }
  EXPECT_EQ(read_slice(v, 0), Array<float>::vector({1, 2}));
  EXPECT_EQ(read_slice(v, -1), Array<float>::vector({15, 16}));
  EXPECT_EQ(read_slice(v, 2, 1), Array<float>::scalar(6));
  EXPECT_EQ(read_slice(v, 7, Slice{.stop = 1}), Array<float>::vector({15}));
  EXPECT_EQ(read_slice(v, Slice{.start = 2, .stop = 7, .step = 2}, -1), Array<float>::vector({6, 10, 14}));
  EXPECT_EQ(read_slice(v, Slice{.start = 6}, Slice{.step = -1}), Array<float>({2, 2}, {14, 13, 16, 15}));
  EXPECT_EQ(read_slice(v, ellipsis), rows({0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(read_slice(v, ellipsis, 1), Array<float>::vector({2, 4, 6, 8, 10, 12, 14, 16}));
  EXPECT_EQ(read_slice(v, Slice{.stop = 2}, ellipsis), rows({0, 1}));
  EXPECT_EQ(read_slice(v, 1, ellipsis), Array<float>::vector({3, 4}));
  EXPECT_EQ(read_slice(v, newaxis).shape, (Shape{1, 8, 2}));
  EXPECT_EQ(read_slice(v, newaxis).values, v.pull());
  EXPECT_EQ(read_slice(v, Slice{.stop = 3}, newaxis, 0), Array<float>({3, 1}, {1, 3, 5}));
  EXPECT_EQ(read_slice(v, ellipsis, newaxis).shape, (Shape{8, 2, 1}));
  // A mask of rows, and of elements.
  EXPECT_EQ(read_slice(v, Array<bool>({8}, {1, 0, 0, 0, 0, 1, 0, 1})), rows({0, 5, 7}));
  Array<bool> odd(Shape{8, 2});
  for (const std::size_t at : {1U, 6U, 15U}) odd.values[at] = 1;
  EXPECT_EQ(read_slice(v, odd), Array<float>::vector({2, 7, 16}));
  EXPECT_EQ(read_slice(v, Array<bool>(Shape{8})), rows({}));
}

// A3.7: same.
TEST_P(Indexing, RejectsInvalidIndices) {
  const auto v = variable<float>({8, 2});
  const auto expect = [&](Code code, const std::string& text, const std::vector<Index>& indices) {
    expect_error(code, "variable \"v0\": " + text, [&] { (void)read_slice(v, indices); });
  };
  expect(Code::out_of_range, "index 8 is out of bounds for axis 0 of size 8: expected -8 to 7", {8});
  expect(Code::out_of_range, "index -9 is out of bounds for axis 0 of size 8: expected -8 to 7", {-9});
  expect(Code::out_of_range, "index 2 is out of bounds for axis 1 of size 2: expected -2 to 1", {0, 2});
  expect(Code::invalid_argument, "the slice of axis 0 has step 0", {Slice{.step = 0}});
  expect(Code::invalid_argument, "3 indices are given for the 2 axes of shape (8, 2)", {0, 0, 0});
  expect(Code::invalid_argument, "an index has one ellipsis at most", {ellipsis, ellipsis});
  expect(Code::invalid_argument, "a mask of shape (2) is given for axes of shape (8)",
         {Array<bool>(Shape{2})});
}

// A3.7, B176: better: an array of integers as an index does not compile; sparse_read and gather_nd accept it.
static_assert(!std::is_constructible_v<Index, Array<std::int64_t>> &&
              !std::is_constructible_v<Index, Array<float>>);
TEST_P(Indexing, ArraysOfIntegersAreNotIndices) {
  EXPECT_EQ(sparse_read(variable<float>({8, 2}), Array<std::int64_t>::vector({4, 2})), rows({4, 2}));
}

// A3.7: better: only the rows that a mask selects are read, not the table.
TEST_P(Indexing, ReadsOnlyTheNeededShards) {
  Counted<Variable<float>> v{variable<float>({8, 2})};  // shards of rows 0-2, 3-5, 6-7
  const auto expect = [&](const Ids& wanted, int pulls, const std::vector<Index>& indices) {
    v.forget();
    (void)read_slice(v, indices);
    EXPECT_EQ(v.rows_read(), wanted);
    EXPECT_EQ(v.pulls(), pulls);
    EXPECT_EQ(v.lookups(), wanted.empty() ? 0 : 1 - pulls);
  };
  expect({0, 1}, 1, {Slice{.stop = 2}});
  expect({6, 7}, 1, {Slice{.start = -2}, 0});
  expect({6, 7}, 1, {Slice{.stop = 5, .step = -1}, 0});
  expect({0, 7}, 0, {Slice{.step = 7}});
  expect({4}, 1, {4, 1});
  expect({}, 0, {Slice{.start = 8}});
  expect({}, 0, {ellipsis, Slice{.stop = 0}});
  expect({1, 7}, 0, {Array<bool>({8}, {0, 1, 0, 0, 0, 0, 0, 1})});
  expect({2, 3}, 1, {Array<bool>({8}, {0, 0, 1, 1, 0, 0, 0, 0})});
}

// A3.6-A3.8: same.
TEST_P(Indexing, ReadsEveryDtypeAndRank) {
  const auto check = [](const auto& v) {
    using T = typename std::remove_cvref_t<decltype(v)>::value_type;
    EXPECT_EQ(read_slice(v, Slice{.start = 6, .stop = 1, .step = -2}), Array<T>::vector({7, 5, 3}));
    EXPECT_EQ(sparse_read(v, Ids{6, 0}), Array<T>::vector({7, 1}));
    EXPECT_EQ(embedding_lookup(v, Ids{5, 5, 2}), Array<T>::vector({6, 6, 3}));
    EXPECT_EQ(read_slice(v, 3), Array<T>::scalar(4));
  };
  check(variable<float>({7}));
  check(variable<double>({7}));
  check(variable<std::int64_t>({7}));
}

std::vector<float> slice_on_worker(Variable<float> v, std::int64_t start) {
  const Array<float> some = read_slice(v, Slice{.start = start, .step = 2}, 1);
  std::vector<float> out = some.values;
  const Array<float> more = sparse_read(v, Ids{7, 0});
  out.insert(out.end(), more.values.begin(), more.values.end());
  return out;
}
void index_too_far(Variable<float> v) { (void)read_slice(v, 8); }

// A3.6-A3.7, B132, B177: same.
TEST_P(Indexing, WorksInAFunctionOnAWorker) {
  ClusterCoordinator coordinator(strategy_);
  const auto v = variable<float>({8, 2});
  EXPECT_EQ(coordinator.schedule<&slice_on_worker>(v, -3).fetch(),
            (std::vector<float>{12, 16, 15, 16, 1, 2}));
  coordinator.schedule<&index_too_far>(v);
  try {
    coordinator.join();
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::out_of_range);
    EXPECT_THAT(error.what(), testing::HasSubstr("index 8 is out of bounds"));
  }
}

}  // namespace
}  // namespace capstan
