// worker_objects_test.cpp -- lifetimes of per-worker objects.
// Tests: src/coordinator/worker/per_worker_objects.cpp
// Tests: src/coordinator/worker/per_worker.cpp
// Tests: src/strategy/worker_resources.cpp
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "capstan/capstan.hpp"
#include "strategy/strategy.hpp"
#include "support/expect_error.hpp"
#include "support/poll.hpp"
#include "support/rank_threads.hpp"

namespace capstan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kWorkersWithObjects = 2;
std::atomic<int> living{0};
std::atomic<int> waiting_with_object{0};
std::atomic<bool> may_go_on{false};

/// Counts its instances in this process, which contains all workers.
struct Counted {
  explicit Counted(int what) : value(what) { ++living; }
  Counted(Counted&& other) noexcept : value(other.value) { ++living; }
  Counted(const Counted& other) : value(other.value) { ++living; }
  Counted& operator=(const Counted&) = default;
  ~Counted() { --living; }
  int value;
};
Counted make_counted(int value) { return Counted(value); }
int counted_value_of(PerWorker<Counted> object) { return object->value; }
int value_when_told(PerWorker<Counted> object) {
  ++waiting_with_object;
  if (!poll_until([] { return may_go_on.load(); })) throw Error(Code::deadline_exceeded, "never told");
  return object->value;
}
void do_nothing() {}
Iterator<int> counted_numbers(int first) {
  return Iterator<int>([first, counted = Counted(0)]() mutable -> std::optional<int> { return first++; });
}
int next_counted(PerWorker<Iterator<int>> numbers) { return numbers->next(); }
int next_of_all_counted(const std::vector<PerWorker<Iterator<int>>>& all) {
  int sum = 0;
  for (const auto& one : all) sum += one->next();
  return sum;
}
/// Holds another object, as a data pipeline holds its table.
struct CountedHolder {
  PerWorker<Counted> held;
};
CountedHolder hold_counted(PerWorker<Counted> object) { return {std::move(object)}; }
int value_of_held(PerWorker<CountedHolder> holder) { return holder->held->value; }

class WorkerObjects : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    living = 0;
    waiting_with_object = 0;
    may_go_on = false;
    const RankThreadsOptions::Flags flags{
        {"ps", "1"}, {"workers", std::to_string(kWorkersWithObjects)}, {"heap-slab-bytes", "1MiB"}};
    if (GetParam()) {
      Settings settings;
      for (const auto& [name, value] : flags) settings.set_from_flag(name, value);
      strategy_.emplace(Cluster(cluster::Runtime::embedded_cluster(settings)));
    } else {
      ranks_.emplace(RankThreadsOptions{.ranks = 2 + kWorkersWithObjects, .flags = flags});
      strategy_.emplace(ranks_->cluster());
    }
    coordinator_.emplace(*strategy_);
  }
  void TearDown() override {
    may_go_on = true;
    coordinator_.reset();
    strategy_.reset();
    ranks_.reset();
    EXPECT_EQ(living, 0);
  }
  /// Lets each worker use its object.
  template <class T>
  void use_everywhere(const PerWorker<T>& object);

  std::optional<RankThreads> ranks_;
  std::optional<ParameterServerStrategy> strategy_;
  std::optional<ClusterCoordinator> coordinator_;
};

template <>
void WorkerObjects::use_everywhere(const PerWorker<Counted>& object) {
  (void)coordinator_->run_on_every_worker<&counted_value_of>(object);
}
template <>
void WorkerObjects::use_everywhere(const PerWorker<Iterator<int>>& object) {
  (void)coordinator_->run_on_every_worker<&next_counted>(object);
}

TEST_P(WorkerObjects, AreFreedWithTheirLastHandle) {
  for (int i = 0; i < 20; ++i) {
    const auto object = coordinator_->create_per_worker_resource<&make_counted>(i);
    use_everywhere(object);
  }
  EXPECT_TRUE(poll_until([] { return living == 0; })) << living;
}

TEST_P(WorkerObjects, LiveAsLongAsAnyHandle) {
  std::optional first(coordinator_->create_per_worker_resource<&make_counted>(1));
  const auto copy = *first;  // NOLINT: the copy is under test
  use_everywhere(copy);
  first.reset();
  const auto other = coordinator_->create_per_worker_resource<&make_counted>(2);
  use_everywhere(other);
  EXPECT_EQ(living, 2 * kWorkersWithObjects);
  EXPECT_THAT(coordinator_->run_on_every_worker<&counted_value_of>(copy), ElementsAre(1, 1));
}

TEST_P(WorkerObjects, ReplaceOldOnesWhenCreatedAgain) {
  auto numbers = coordinator_->create_per_worker_dataset<&counted_numbers>(0);
  use_everywhere(numbers);
  for (int i = 1; i <= 10; ++i) {
    numbers = coordinator_->create_per_worker_dataset<&counted_numbers>(100 * i);
    EXPECT_EQ(coordinator_->run_on_every_worker<&next_counted>(numbers).front(), 100 * i);
  }
  EXPECT_TRUE(poll_until([] { return living == kWorkersWithObjects; })) << living;
}

TEST_P(WorkerObjects, LiveWhileAClosureThatUsesThemIsQueuedOrRuns) {
  std::vector<RemoteValue<int>> values;
  {
    const auto object = coordinator_->create_per_worker_resource<&make_counted>(42);
    for (int i = 0; i < 20; ++i) values.push_back(coordinator_->schedule<&value_when_told>(object));
  }
  ASSERT_TRUE(poll_until([] { return waiting_with_object == kWorkersWithObjects; }));
  EXPECT_EQ(living, kWorkersWithObjects);
  may_go_on = true;
  for (const auto& value : values) EXPECT_EQ(value.fetch(), 42);
  EXPECT_TRUE(poll_until([] { return living == 0; })) << living;
}

TEST_P(WorkerObjects, LiveWhileTheyArePartOfAnArgument) {
  std::optional<RemoteValue<int>> sum;
  {
    const std::vector both{coordinator_->create_per_worker_dataset<&counted_numbers>(1),
                           coordinator_->create_per_worker_dataset<&counted_numbers>(2)};
    sum = coordinator_->schedule<&next_of_all_counted>(both);
  }
  EXPECT_EQ(sum->fetch(), 3);
  EXPECT_TRUE(poll_until([] { return living == 0; })) << living;
}

TEST_P(WorkerObjects, LiveAsLongAsAnObjectThatHoldsThem) {
  std::optional<PerWorker<CountedHolder>> holder;
  {
    const auto object = coordinator_->create_per_worker_resource<&make_counted>(7);
    holder = coordinator_->create_per_worker_resource<&hold_counted>(object);
  }
  EXPECT_THAT(coordinator_->run_on_every_worker<&value_of_held>(*holder), ElementsAre(7, 7));
  EXPECT_EQ(living, kWorkersWithObjects);
  holder.reset();
  EXPECT_TRUE(poll_until([] { return living == 0; })) << living;
}

TEST_P(WorkerObjects, AreFreedWhenTheirClosuresWereCancelled) {
  {
    const auto object = coordinator_->create_per_worker_resource<&make_counted>(1);
    use_everywhere(object);
    for (int i = 0; i < 50; ++i) coordinator_->schedule<&value_when_told>(object);
    ASSERT_TRUE(poll_until([] { return waiting_with_object == kWorkersWithObjects; }));
    const auto late = std::chrono::milliseconds(1);
    const auto expired = coordinator_->schedule_with<&do_nothing>({.deadline = late});
    ASSERT_TRUE(poll_until([&] { return expired.ready(); }));
    may_go_on = true;
    error_of(Code::deadline_exceeded, [&] { coordinator_->join(); });
  }
  EXPECT_TRUE(poll_until([] { return living == 0; })) << living;
}

TEST_P(WorkerObjects, OfEveryKindAreFreed) {
  for (int i = 0; i < 3; ++i) {
    const auto scope = strategy_->scope();
    const PerWorkerVariable<float> sums("sums" + std::to_string(i), Shape{3});
    const StaticHashTable<std::string, std::int64_t> table("table", {"a"}, {i}, -1);
    EXPECT_EQ(sums.read_all(*coordinator_).size(), static_cast<std::size_t>(kWorkersWithObjects));
  }
  EXPECT_TRUE(strategy_->implementation().worker_resources().after(0).empty());
}

INSTANTIATE_TEST_SUITE_P(ClusterKinds, WorkerObjects, testing::Bool(), [](const auto& kind) {
  return kind.param ? std::string("embedded") : std::string("ranks");
});

// Datasets that are passed to create_per_worker_dataset or to a closure, and function objects that make them.

using NumbersOnWorker = std::vector<std::int64_t>;

NumbersOnWorker all_numbers_of(PerWorker<Iterator<std::int64_t>> numbers) {
  NumbersOnWorker all;
  while (const auto next = numbers->try_next()) all.push_back(*next);
  return all;
}
template <class T>
std::vector<T> elements_of_dataset(PerWorker<Iterator<T>> iterator) {
  std::vector<T> all;
  while (auto next = iterator->try_next()) all.push_back(std::move(*next));
  return all;
}
struct PlusN {
  std::int64_t n = 0;
  std::int64_t operator()(std::int64_t x) const { return x + n; }
};
struct RangeTimesTenPlus {
  std::int64_t addend = 0;
  Dataset<std::int64_t> operator()(std::int64_t stop) const {
    return Dataset<std::int64_t>::range(stop).map([](std::int64_t x) { return 10 * x; }).map(PlusN{addend});
  }
};

class DatasetObjects : public testing::Test {
 protected:
  template <class T>
  void expect_same_on_workers(const Dataset<T>& dataset) {
    std::vector<T> here;
    for (const T& element : dataset) here.push_back(element);
    EXPECT_FALSE(here.empty());
    const auto data = coordinator_.create_per_worker_dataset(dataset);
    static_assert(std::is_same_v<decltype(data), const PerWorker<Iterator<T>>>);
    EXPECT_THAT(coordinator_.run_on_every_worker<&elements_of_dataset<T>>(data), ElementsAre(here, here));
  }

  RankThreads ranks_{{.ranks = 4, .flags = {{"ps", "1"}}}};
  ParameterServerStrategy strategy_{ranks_.cluster()};
  ClusterCoordinator coordinator_{strategy_};
};

TEST_F(DatasetObjects, FromMemoryAreReadByEachWorker) {
  using Data = Dataset<std::int64_t>;
  expect_same_on_workers(Data::range(5));
  expect_same_on_workers(Data::range(9, 0, -2));
  expect_same_on_workers(Data::from_vector({3, 1, 2}));
  expect_same_on_workers(Dataset<std::string>::from_vector({"a", "bc"}));
  expect_same_on_workers(make_array_dataset(Array<float>(Shape{3, 2}, {1, 2, 3, 4, 5, 6})));
  expect_same_on_workers(make_array_dataset(
      std::pair(Array<float>(Shape{2, 2}, {1, 2, 3, 4}), Array<std::int64_t>(Shape{2}, {7, 8}))));
}

TEST_F(DatasetObjects, KeepTheirOperators) {
  const auto ten = Dataset<std::int64_t>::range(10);
  const auto even = [](const std::int64_t& x) { return x % 2 == 0; };
  expect_same_on_workers(ten.take(4).concatenate(ten.skip(8)).shard(2, 1).repeat(2).prefetch(2).cache());
  expect_same_on_workers(ten.shuffle(5, {.seed = 3}).batch(4, true));
  expect_same_on_workers(ten.batch(3).rebatch({2, 1}).legacy_rebatch(2));
  expect_same_on_workers(ten.filter(even).map(PlusN{5}).map([](std::int64_t x) { return 0.5 * double(x); }));
  expect_same_on_workers(ten.map([](std::int64_t x) { return x * x; }, {.threads = 2}));
  expect_same_on_workers(ten.batch_as(4, [](const NumbersOnWorker& some) { return some.size(); }));
  expect_same_on_workers(ten.flat_map([](std::int64_t x) { return Dataset<std::int64_t>::range(x); }));
  expect_same_on_workers(zip(ten, ten.map(PlusN{1})));
  expect_same_on_workers(zip(ten, ten, Dataset<std::string>::from_vector({"x", "y"})));
}

TEST_F(DatasetObjects, FromFilesAreReadByEachWorker) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("capstan-worker-objects-" + std::to_string(getpid()) + ".txt");
  std::ofstream(path) << "1 1:2 3:4\n-1 2:5\n";
  expect_same_on_workers(text_lines({path}));
  expect_same_on_workers(text_lines({path}).map([](const std::string& line) { return line.size(); }));
  expect_same_on_workers(libsvm({path}));
  expect_same_on_workers(libsvm_batches({path}, 2, {.two_classes = true}));
  expect_same_on_workers(separated({path}, {.separator = ':', .quote = '\0', .columns = 0}).take(1));
  expect_same_on_workers(fixed_records({path}, 2, {.footer_bytes = 1}).take(3));
  expect_same_on_workers(
      list_files({path}).flat_map([](const std::filesystem::path& file) { return text_lines({file}); }));
  std::filesystem::remove(path);
}

TEST_F(DatasetObjects, WithCapturesAreRejectedNamingTheOperator) {
  std::int64_t secret = 3;
  const auto numbers = Dataset<std::int64_t>::range(3);
  const auto expect_rejected = [&](const auto& dataset, const std::string& name) {
    EXPECT_THAT(
        error_of(Code::invalid_argument, [&] { (void)coordinator_.create_per_worker_dataset(dataset); }),
        HasSubstr("'" + name + "'"));
  };
  expect_rejected(numbers.map([secret](std::int64_t x) { return x + secret; }).batch(2), "map");
  expect_rejected(numbers.filter([&](const std::int64_t& x) { return x < secret; }), "filter");
  const std::function<std::int64_t(std::int64_t)> erased = PlusN{1};
  expect_rejected(numbers.map(erased), "map");
  struct Unserializable {
    std::shared_ptr<int> pointer;
  };
  expect_rejected(Dataset<Unserializable>::from_vector({{}}).map([](const Unserializable&) { return 1; }),
                  "from_vector");
}

TEST_F(DatasetObjects, AreMadeByFunctionObjects) {
  const NumbersOnWorker expected{3, 13, 23};
  const auto expect_it = [&](const PerWorker<Iterator<std::int64_t>>& data) {
    EXPECT_THAT(coordinator_.run_on_every_worker<&all_numbers_of>(data), ElementsAre(expected, expected));
  };
  expect_it(coordinator_.create_per_worker_dataset(RangeTimesTenPlus{3}, 3));
  expect_it(coordinator_.create_per_worker_dataset(
      [](std::int64_t stop) { return RangeTimesTenPlus{3}(stop); }, 3));
  expect_it(coordinator_.create_per_worker_dataset<[](int stop) { return RangeTimesTenPlus{3}(stop); }>(3));
  expect_it(coordinator_.create_per_worker_dataset([] {
    return iterate(std::vector<std::int64_t>{3, 13, 23});
  }));
}

TEST_F(DatasetObjects, AreArgumentsOfClosures) {
  const auto data = Dataset<std::int64_t>::range(4).map(PlusN{1});
  const auto sum = coordinator_.schedule<[](const Dataset<std::int64_t>& numbers) {
    std::int64_t total = 0;
    for (const std::int64_t number : numbers) total += number;
    return total;
  }>(data);
  EXPECT_EQ(sum.fetch(), 10);
}

}  // namespace
}  // namespace capstan
