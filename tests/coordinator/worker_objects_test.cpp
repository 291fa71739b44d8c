// worker_objects_test.cpp -- how long objects that each worker makes for itself live.
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

template <class Condition>
bool comes_true(const Condition& condition) {
  return poll([&]() -> std::optional<bool> { return condition() ? std::optional(true) : std::nullopt; })
      .has_value();
}

constexpr int kWorkersWithObjects = 2;
std::atomic<int> living{0};
std::atomic<int> waiting_with_object{0};
std::atomic<bool> may_go_on{false};

/// Says how many there are of it, in this process, which all workers are in.
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
  if (!comes_true([] { return may_go_on.load(); })) throw Error(Code::deadline_exceeded, "never told");
  return object->value;
}
void do_nothing_by_a_deadline() {}
Iterator<int> counted_numbers(int first) {
  return Iterator<int>([first, counted = Counted(0)]() mutable -> std::optional<int> { return first++; });
}
int next_counted(PerWorker<Iterator<int>> numbers) { return numbers->next(); }
int next_of_all_counted(const std::vector<PerWorker<Iterator<int>>>& all) {
  int sum = 0;
  for (const auto& one : all) sum += one->next();
  return sum;
}
/// Holds another object, as a pipeline holds its table.
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
  /// Each worker has used its own.
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
  EXPECT_TRUE(comes_true([] { return living == 0; })) << living;
}

TEST_P(WorkerObjects, LiveAsLongAsOneHandle) {
  std::optional first(coordinator_->create_per_worker_resource<&make_counted>(1));
  const auto copy = *first;  // NOLINT: what the test is about
  use_everywhere(copy);
  first.reset();
  const auto other = coordinator_->create_per_worker_resource<&make_counted>(2);
  use_everywhere(other);
  EXPECT_EQ(living, 2 * kWorkersWithObjects);
  EXPECT_THAT(coordinator_->run_on_every_worker<&counted_value_of>(copy), ElementsAre(1, 1));
}

TEST_P(WorkerObjects, ThatAreCreatedAgainReplaceTheOldOnes) {
  auto numbers = coordinator_->create_per_worker_dataset<&counted_numbers>(0);
  use_everywhere(numbers);
  for (int i = 1; i <= 10; ++i) {
    numbers = coordinator_->create_per_worker_dataset<&counted_numbers>(100 * i);
    EXPECT_EQ(coordinator_->run_on_every_worker<&next_counted>(numbers).front(), 100 * i);
  }
  EXPECT_TRUE(comes_true([] { return living == kWorkersWithObjects; })) << living;
}

TEST_P(WorkerObjects, LiveWhileAClosureThatNamesThemIsQueuedOrRuns) {
  std::vector<RemoteValue<int>> values;
  {
    const auto object = coordinator_->create_per_worker_resource<&make_counted>(42);
    for (int i = 0; i < 20; ++i) values.push_back(coordinator_->schedule<&value_when_told>(object));
  }
  ASSERT_TRUE(comes_true([] { return waiting_with_object == kWorkersWithObjects; }));
  EXPECT_EQ(living, kWorkersWithObjects);
  may_go_on = true;
  for (const auto& value : values) EXPECT_EQ(value.fetch(), 42);
  EXPECT_TRUE(comes_true([] { return living == 0; })) << living;
}

TEST_P(WorkerObjects, LiveWhileTheyAreAPartOfAnArgument) {
  std::optional<RemoteValue<int>> sum;
  {
    const std::vector both{coordinator_->create_per_worker_dataset<&counted_numbers>(1),
                           coordinator_->create_per_worker_dataset<&counted_numbers>(2)};
    sum = coordinator_->schedule<&next_of_all_counted>(both);
  }
  EXPECT_EQ(sum->fetch(), 3);
  EXPECT_TRUE(comes_true([] { return living == 0; })) << living;
}

TEST_P(WorkerObjects, LiveAsLongAsAnObjectThatWasMadeOfThem) {
  std::optional<PerWorker<CountedHolder>> holder;
  {
    const auto object = coordinator_->create_per_worker_resource<&make_counted>(7);
    holder = coordinator_->create_per_worker_resource<&hold_counted>(object);
  }
  EXPECT_THAT(coordinator_->run_on_every_worker<&value_of_held>(*holder), ElementsAre(7, 7));
  EXPECT_EQ(living, kWorkersWithObjects);
  holder.reset();
  EXPECT_TRUE(comes_true([] { return living == 0; })) << living;
}

TEST_P(WorkerObjects, AreFreedWhenTheirClosuresWereCancelled) {
  {
    const auto object = coordinator_->create_per_worker_resource<&make_counted>(1);
    use_everywhere(object);
    for (int i = 0; i < 50; ++i) coordinator_->schedule<&value_when_told>(object);
    ASSERT_TRUE(comes_true([] { return waiting_with_object == kWorkersWithObjects; }));
    const auto late = std::chrono::milliseconds(1);
    coordinator_->schedule_with<&do_nothing_by_a_deadline>({.deadline = late});
    may_go_on = true;
    error_of(Code::deadline_exceeded, [&] { coordinator_->join(); });
  }
  EXPECT_TRUE(comes_true([] { return living == 0; })) << living;
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

INSTANTIATE_TEST_SUITE_P(Shapes, WorkerObjects, testing::Bool(), [](const auto& shape) {
  return shape.param ? std::string("embedded") : std::string("ranks");
});

}  // namespace
}  // namespace capstan
