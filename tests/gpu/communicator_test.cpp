// communicator_test.cpp -- groups of GPUs or stand-ins, compared with a plain loop; groups with a GPU that is
// late or fails.
// Tests: src/gpu/communicator_nccl.cpp
// Tests: src/gpu/communicator_none.cpp
// Tests: src/gpu/group_stand_in.cpp
#include "gpu/communicator.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <future>
#include <limits>
#include <random>
#include <stdexcept>
#include <thread>

#include "base/with_type.hpp"
#include "gpu/async_teardown.hpp"
#include "gpu/group_driver.hpp"
#include "gpu/stand_in.hpp"
#include "support/asleep.hpp"
#include "support/names_all.hpp"
#include "tests/support/expect_error.hpp"

namespace capstan::gpu {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr auto kTimeout = 60s;
constexpr Combine kCombines[] = {Combine::sum, Combine::minimum, Combine::maximum, Combine::product,
                                 Combine::mean};

/// Uses `gpus` GPUs with a stream each, or stand-ins if there are fewer GPUs or no NCCL.
class Gpus {
 public:
  explicit Gpus(int gpus) {
    if (count() < gpus || (gpus > 1 && !why_no_group().empty())) use_stand_ins(gpus);
    for (int gpu = 0; gpu < gpus; ++gpu) streams_.push_back(std::make_unique<Stream>(gpu));
  }
  ~Gpus() {
    streams_.clear();
    if (are_stand_ins()) use_stand_ins(0);
  }

  std::vector<const Stream*> streams() const {
    std::vector<const Stream*> all;
    for (const auto& stream : streams_) all.push_back(stream.get());
    return all;
  }
  const Stream& operator[](std::size_t rank) const { return *streams_[rank]; }
  std::size_t size() const { return streams_.size(); }

 private:
  std::vector<std::unique_ptr<Stream>> streams_;
};

/// An array on each GPU, in the order of the streams.
template <class T>
class Arrays {
 public:
  Arrays(const Gpus& gpus, const std::vector<std::vector<T>>& values) : gpus_(gpus), host_(values) {
    for (std::size_t rank = 0; rank < gpus.size(); ++rank) {
      arrays_.emplace_back(static_cast<int>(rank), values[rank].size());
      copy(gpus[rank], arrays_[rank].data(), host_[rank].data(), host_[rank].size() * sizeof(T));
    }
  }
  Arrays(const Gpus& gpus, std::size_t size) : Arrays(gpus, std::vector(gpus.size(), std::vector<T>(size))) {}

  T* at(std::size_t rank) const { return arrays_[rank].data(); }
  /// Copies the arrays to the host, and waits for all work of the group.
  const std::vector<std::vector<T>>& copy_back(Communicator& group) {
    for (std::size_t rank = 0; rank < arrays_.size(); ++rank) {
      copy(gpus_[rank], host_[rank].data(), at(rank), host_[rank].size() * sizeof(T));
    }
    group.wait(kTimeout);
    return host_;
  }

 private:
  const Gpus& gpus_;
  std::vector<std::vector<T>> host_;
  std::vector<Values<T>> arrays_;
};

template <class T>
std::vector<Part> parts(const Arrays<T>& in, const Arrays<T>& out, std::size_t gpus) {
  std::vector<Part> all;
  for (std::size_t rank = 0; rank < gpus; ++rank) all.push_back({in.at(rank), out.at(rank)});
  return all;
}

/// Small halves and integers, whose sums and products are exact in every type.
template <class T>
std::vector<std::vector<T>> exact_values(std::size_t gpus, std::size_t size, std::mt19937& random) {
  std::vector<std::vector<T>> values(gpus, std::vector<T>(size));
  for (auto& array : values) {
    for (T& value : array) {
      const int integer = static_cast<int>(random() % 9) - 4;
      if constexpr (std::is_integral_v<T>) {
        value = static_cast<T>(integer);
      } else {
        value = T(static_cast<float>(integer) / 2);
      }
    }
  }
  return values;
}

/// Combines in a plain loop in double, which is exact for values of exact_values().
template <class T>
std::vector<T> expected(Combine how, const std::vector<std::vector<T>>& values) {
  std::vector<T> result;
  for (std::size_t i = 0; i < values[0].size(); ++i) {
    const auto number = [&](std::size_t rank) {
      return static_cast<double>(static_cast<Arithmetic<T>>(values[rank][i]));
    };
    double total = number(0);
    for (std::size_t rank = 1; rank < values.size(); ++rank) {
      const double x = number(rank);
      if (how == Combine::sum || how == Combine::mean) total += x;
      if (how == Combine::product) total *= x;
      if (how == Combine::minimum) total = std::min(total, x);
      if (how == Combine::maximum) total = std::max(total, x);
    }
    if (how == Combine::mean) total /= static_cast<double>(values.size());
    if constexpr (std::is_integral_v<T>) {
      result.push_back(static_cast<T>(static_cast<std::int64_t>(total)));
    } else {
      result.push_back(static_cast<T>(static_cast<Arithmetic<T>>(total)));
    }
  }
  return result;
}

template <class T>
void check_all_calls(const Gpus& gpus, Communicator& group, DType dtype, std::size_t count,
                     std::mt19937& random) {
  const std::size_t n = gpus.size();
  const std::vector<std::vector<T>> values = exact_values<T>(n, count, random);
  for (const Combine how : kCombines) {
    if (how == Combine::mean && std::is_integral_v<T>) continue;
    Arrays<T> in(gpus, values), out(gpus, count);
    group.all_reduce(how, dtype, count, parts(in, out, n));
    group.all_reduce(how, dtype, count, parts(in, in, n));
    const std::vector<T> want = expected(how, values);
    for (const auto& got : out.copy_back(group)) EXPECT_EQ(got, want) << to_string(dtype);
    for (const auto& got : in.copy_back(group)) EXPECT_EQ(got, want) << "in place";

    const std::vector<std::vector<T>> longer = exact_values<T>(n, n * count, random);
    Arrays<T> all(gpus, longer), part(gpus, count);
    group.reduce_scatter(how, dtype, count, parts(all, part, n));
    const std::vector<T> combined = expected(how, longer);
    const auto& got = part.copy_back(group);
    for (std::size_t rank = 0; rank < n; ++rank) {
      const auto first = combined.begin() + static_cast<std::ptrdiff_t>(rank * count);
      EXPECT_EQ(got[rank], std::vector<T>(first, first + static_cast<std::ptrdiff_t>(count)));
    }
  }

  Arrays<T> in(gpus, values), gathered(gpus, n * count);
  group.all_gather(dtype, count, parts(in, gathered, n));
  std::vector<T> joined;
  for (const auto& array : values) joined.insert(joined.end(), array.begin(), array.end());
  for (const auto& got : gathered.copy_back(group)) EXPECT_EQ(got, joined);

  const std::size_t root = random() % n;
  group.broadcast(static_cast<int>(root), dtype, count, parts(in, in, n));
  for (const auto& got : in.copy_back(group)) EXPECT_EQ(got, values[root]);
}

class CommunicatorTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (std::getenv("CAPSTAN_TESTS_GPU") != nullptr && count() == 0) FAIL() << why_none();
  }
};
INSTANTIATE_TEST_SUITE_P(Gpus, CommunicatorTest, testing::Values(1, 2, 4));

TEST_P(CommunicatorTest, AllCallsAgreeWithAPlainLoopForAllTypes) {
  const Gpus gpus(GetParam());
  Communicator group(gpus.streams());
  std::mt19937 random(7);
  for (const DType dtype : kDTypes) {
    with_type(dtype, [&]<class T>(std::type_identity<T>) {
      for (const std::size_t count : {0, 1, 37}) check_all_calls<T>(gpus, group, dtype, count, random);
    });
  }
}

TEST_P(CommunicatorTest, RandomCallsAgreeWithAPlainLoop) {
  const Gpus gpus(GetParam());
  const std::size_t n = gpus.size();
  Communicator group(gpus.streams());
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  std::vector<std::vector<double>> plain = exact_values<double>(n, 33, random);
  Arrays<double> arrays(gpus, plain);
  for (int round = 0; round < 200; ++round) {
    const std::size_t first = random() % 33;
    const std::size_t count = random() % (33 - first + 1);
    std::vector<Part> where;
    std::vector<std::vector<double>> piece(n);
    for (std::size_t rank = 0; rank < n; ++rank) {
      where.push_back({arrays.at(rank) + first, arrays.at(rank) + first});
      piece[rank].assign(plain[rank].begin() + static_cast<std::ptrdiff_t>(first),
                         plain[rank].begin() + static_cast<std::ptrdiff_t>(first + count));
    }
    std::vector<double> result;
    if (random() % 2 == 0) {
      const Combine how = random() % 2 == 0 ? Combine::minimum : Combine::mean;
      group.all_reduce(how, DType::float64, count, where);
      result = expected(how, piece);
    } else {
      const std::size_t root = random() % n;
      group.broadcast(static_cast<int>(root), DType::float64, count, where);
      result = piece[root];
    }
    for (auto& array : plain) {
      std::copy(result.begin(), result.end(), array.begin() + static_cast<std::ptrdiff_t>(first));
    }
    if (random() % 16 == 0) group.wait(static_cast<int>(random() % n), kTimeout);
  }
  const auto& got = arrays.copy_back(group);
  for (std::size_t rank = 0; rank < n; ++rank) {
    for (std::size_t i = 0; i < 33; ++i) EXPECT_DOUBLE_EQ(got[rank][i], plain[rank][i]) << rank << ", " << i;
  }
}

TEST(Communicator, StandInsRoundOnce) {
  const Gpus gpus(3);
  if (!are_stand_ins()) GTEST_SKIP() << "NCCL may round at every step";
  Communicator group(gpus.streams());
  // 2048 + 1 is a tie, which rounds to the even 2048; the third addend breaks it. A sum in
  // float would lose that addend, 2^-24.
  const std::vector<std::vector<float16>> values{{float16(2048), float16(2048), float16(-2048)},
                                                 {float16(1), float16(1), float16(-1)},
                                                 {float16(0), float16(0x1p-24F), float16(-0x1p-24F)}};
  Arrays<float16> arrays(gpus, values);
  group.all_reduce(Combine::sum, DType::float16, 3, parts(arrays, arrays, 3));
  for (const auto& got : arrays.copy_back(group)) {
    EXPECT_EQ(static_cast<float>(got[0]), 2048);
    EXPECT_EQ(static_cast<float>(got[1]), 2050);
    EXPECT_EQ(static_cast<float>(got[2]), -2050);
  }
  // Sequential sums in float would give 2^24 and infinity.
  const std::vector<std::vector<float>> floats{{0x1p24F, 3e38F}, {1, 3e38F}, {1, -3e38F}};
  Arrays<float> sums(gpus, floats);
  group.all_reduce(Combine::sum, DType::float32, 2, parts(sums, sums, 3));
  for (const auto& got : sums.copy_back(group)) EXPECT_EQ(got, (std::vector<float>{0x1p24F + 2, 3e38F}));
}

TEST(Communicator, NcclLoadsIfTheBuildHasIt) {
  const std::string reason = real::why_no_group();
  if (reason.find("cannot be loaded") != std::string::npos) GTEST_SKIP() << reason;
  EXPECT_TRUE(reason.empty() || reason.find("this build lacks it") != std::string::npos) << reason;
}

TEST(Communicator, IntegersWrapAround) {
  const Gpus gpus(2);
  Communicator group(gpus.streams());
  const auto most = std::numeric_limits<std::int64_t>::max();
  Arrays<std::int64_t> arrays(gpus, {{most, most}, {1, 2}});
  group.all_reduce(Combine::sum, DType::int64, 1, parts(arrays, arrays, 2));
  for (const auto& got : arrays.copy_back(group)) EXPECT_EQ(got[0], std::numeric_limits<std::int64_t>::min());
}

TEST(Communicator, RejectsInvalidCalls) {
  const Gpus gpus(2);
  const Stream duplicate(1);
  EXPECT_THAT(error_of(Code::invalid_argument,
                       [&] {
                         Communicator({&gpus[0], &gpus[1], &duplicate});
                       }),
              HasSubstr("GPU 1"));
  EXPECT_THROW(Communicator({}), Error);
  Communicator group(gpus.streams());
  const Arrays<std::int32_t> arrays(gpus, 4);
  const std::vector<Part> both = parts(arrays, arrays, 2);
  EXPECT_THAT(
      error_of(Code::invalid_argument, [&] { group.all_reduce(Combine::mean, DType::int32, 4, both); }),
      NamesAll({"all_reduce", "4 int32"}));
  EXPECT_THAT(error_of(Code::invalid_argument,
                       [&] {
                         group.all_reduce(Combine::sum, DType::int32, 4, {both.data(), 1});
                       }),
              NamesAll({"all_reduce", "4 int32", "1", "2"}));
  EXPECT_THAT(error_of(Code::invalid_argument, [&] { group.broadcast(2, DType::int32, 4, both); }),
              NamesAll({"broadcast", "4 int32", "2"}));
  EXPECT_FALSE(group.has_failed());
  group.wait(kTimeout);
}

class StandInGroups : public testing::Test {
 protected:
  void SetUp() override { use_stand_ins(2); }
  void TearDown() override { use_stand_ins(0); }
};

TEST_F(StandInGroups, ExecuteWorkOnlyDuringAWait) {
  const Gpus gpus(2);
  Communicator group(gpus.streams());
  const Arrays<float> arrays(gpus, {{1, 2}, {3, 4}});
  std::vector<float> seen(2);
  group.all_reduce(Combine::sum, DType::float32, 2, parts(arrays, arrays, 2));
  copy(gpus[1], seen.data(), arrays.at(1), 2 * sizeof(float));
  EXPECT_EQ(seen, (std::vector<float>{0, 0}));
  group.wait(1, kTimeout);
  EXPECT_EQ(seen, (std::vector<float>{4, 6}));
}

TEST_F(StandInGroups, LateGpuIsNamedAndFailsTheGroup) {
  const Gpus gpus(2);
  const Arrays<float> arrays(gpus, {{1, 2}, {3, 4}});
  {
    Communicator group(gpus.streams());
    // 200 ms of work for the late GPU, in pieces.
    for (int i = 0; i < 200; ++i) gpus[1].stand_in()->enqueue([] { std::this_thread::sleep_for(1ms); });
    group.all_reduce(Combine::sum, DType::float32, 2, parts(arrays, arrays, 2));
    const std::string error = error_of(Code::deadline_exceeded, [&] { group.wait(0, 20ms); });
    EXPECT_THAT(error, NamesAll({"GPU 1", "all_reduce", "2 float32", "20 ms"}));
    EXPECT_TRUE(group.has_failed());
    EXPECT_EQ(error_of(Code::deadline_exceeded, [&] { group.wait(1, kTimeout); }), error);
    EXPECT_EQ(error_of(Code::deadline_exceeded,
                       [&] { group.all_gather(DType::float32, 1, parts(arrays, arrays, 2)); }),
              error);
  }
  // The arrays keep their values, and the streams remain usable in another group.
  Arrays<float> more(gpus, {{5, 6}, {7, 8}});
  Communicator group(gpus.streams());
  group.all_reduce(Combine::sum, DType::float32, 2, parts(more, more, 2));
  for (const auto& got : more.copy_back(group)) EXPECT_EQ(got, (std::vector<float>{12, 14}));
}

TEST_F(StandInGroups, SlowWorkOutsideOfCallsDoesNotFailTheGroup) {
  const Gpus gpus(2);
  Communicator group(gpus.streams());
  const Arrays<float> arrays(gpus, {{1, 2}, {3, 4}});
  group.all_reduce(Combine::sum, DType::float32, 2, parts(arrays, arrays, 2));
  // 100 ms of work for the slow GPU, in pieces.
  for (int i = 0; i < 100; ++i) gpus[1].stand_in()->enqueue([] { std::this_thread::sleep_for(1ms); });
  EXPECT_THAT(error_of(Code::deadline_exceeded, [&] { group.wait(1, 10ms); }), NamesAll({"GPU 1", "10 ms"}));
  EXPECT_FALSE(group.has_failed());
  group.wait(kTimeout);
}

TEST_F(StandInGroups, FailedWorkFailsEveryWait) {
  const Gpus gpus(2);
  const Arrays<float> arrays(gpus, {{1, 2}, {3, 4}});
  Communicator group(gpus.streams());
  gpus[1].stand_in()->enqueue([] { throw std::runtime_error("failed work"); });
  group.all_reduce(Combine::sum, DType::float32, 2, parts(arrays, arrays, 2));
  EXPECT_THAT(error_of(Code::internal, [&] { group.wait(0, kTimeout); }), HasSubstr("failed work"));
  EXPECT_THAT(error_of(Code::internal, [&] { group.wait(1, kTimeout); }), HasSubstr("failed work"));
  EXPECT_TRUE(group.has_failed());
}

TEST_F(StandInGroups, DestructorAbortsUnfinishedCalls) {
  const Gpus gpus(2);
  const Arrays<float> arrays(gpus, {{1, 2}, {3, 4}});
  std::vector<float> seen(2);
  {
    Communicator group(gpus.streams());
    group.all_reduce(Combine::sum, DType::float32, 2, parts(arrays, arrays, 2));
  }
  copy(gpus[0], seen.data(), arrays.at(0), 2 * sizeof(float));
  gpus[0].wait();
  EXPECT_EQ(seen, (std::vector<float>{1, 2}));
}

TEST(AsyncTeardown, WaitsForTheTeardownsOfTheGivenDevicesUpToTheTimeout) {
  AsyncTeardown teardown;
  std::promise<void> first, second;
  std::atomic<int> ended = 0;
  for (auto* promise : {&first, &second}) {
    teardown.begin(3, [&ended, released = promise->get_future().share()] {
      released.wait();
      ++ended;
    });
  }
  teardown.begin(5, [&ended] { ++ended; });
  EXPECT_TRUE(teardown.unfinished(std::array{4, 5}, kTimeout).empty()) << "must not wait for other devices";
  EXPECT_EQ(teardown.unfinished(std::array{5, 3, 3}, 10ms), std::vector{3});
  first.set_value();
  EXPECT_EQ(teardown.unfinished(std::array{3}, 10ms), std::vector{3}) << "a second teardown is unfinished";
  EXPECT_TRUE(teardown.unfinished(std::array{5}, 0ms).empty());
  second.set_value();
  EXPECT_TRUE(teardown.unfinished(std::array{3, 5}, kTimeout).empty());
  EXPECT_EQ(ended, 3);
}

TEST_F(StandInGroups, NewGroupWaitsForTheTeardownOfAFailedOne) {
  const Gpus gpus(2);
  std::promise<void> release;
  async_teardown().begin(1, [released = release.get_future().share()] { released.wait(); });
  EXPECT_THAT(error_of(Code::failed_precondition, [&] { Communicator(gpus.streams(), 10ms); }),
              NamesAll({"GPU 1", "10 ms"}));
  const Communicator alone({&gpus[0]}, 10ms);
  std::jthread later([&, waiting = gettid()] {
    EXPECT_TRUE(wait_until_asleep(waiting));
    release.set_value();
  });
  Communicator group(gpus.streams(), kTimeout);
  Arrays<float> arrays(gpus, {{1}, {2}});
  group.all_reduce(Combine::sum, DType::float32, 1, parts(arrays, arrays, 2));
  for (const auto& got : arrays.copy_back(group)) EXPECT_EQ(got[0], 3);
}

TEST_F(StandInGroups, ThreadsWaitForTheirOwnStreams) {
  const Gpus gpus(2);
  Communicator group(gpus.streams());
  std::vector<std::jthread> threads;
  Arrays<double> arrays(gpus, {{1}, {3}});
  for (int round = 0; round < 20; ++round) {
    group.all_reduce(Combine::mean, DType::float64, 1, parts(arrays, arrays, 2));
    for (int rank = 0; rank < 2; ++rank) threads.emplace_back([&, rank] { group.wait(rank, kTimeout); });
    threads.clear();
  }
  for (const auto& got : arrays.copy_back(group)) EXPECT_EQ(got[0], 2);
}

}  // namespace
}  // namespace capstan::gpu
