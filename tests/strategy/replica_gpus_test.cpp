// replica_gpus_test.cpp -- replicas with one GPU or stand-in each: collectives on arrays, reads and pushes
// once per worker, and failed calls.
#include "strategy/replica_gpus.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <thread>

#include "capstan/capstan.hpp"
#include "gpu/stand_in.hpp"
#include "support/expect_error.hpp"
#include "support/names_all.hpp"
#include "support/rank_threads.hpp"
#include "transport/loop/loop.hpp"

namespace capstan {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;
using Doubles = std::vector<double>;
using Flags = RankThreadsOptions::Flags;

/// Returns the number of stand-ins to use: 0 if the machine has `gpus` GPUs, and NCCL for several of them.
int stand_ins_for(int gpus) {
  gpu::use_stand_ins(0);
  return gpu::count() >= gpus && (gpus == 1 || gpu::why_no_group().empty()) ? 0 : gpus;
}

/// Two ps and a worker. The test's thread is the coordinator and runs replicas as a worker does.
class GpuJob {
 public:
  GpuJob(int replicas, const std::string& replica_device, const std::string& timeout = "20s")
      : ranks_({.ranks = 4,
                .flags = {{"ps", "2"},
                          {"replicas", std::to_string(replicas)},
                          {"replica-device", replica_device},
                          {"gpu-stand-ins", std::to_string(stand_ins_for(replicas))},
                          {"wait-timeout", timeout}}}) {
    strategy.allow_run_without_coordinator();
  }

 private:
  RankThreads ranks_;

 public:
  ParameterServerStrategy strategy{ranks_.cluster(), {FixedShardsPartitioner{2}}};
  cluster::TrafficMetrics traffic() { return ranks_.runtime().traffic().metrics(); }
};

class ReplicaGpusTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    ASSERT_FALSE(gpu::count() == 0 && std::getenv("CAPSTAN_TESTS_GPU") != nullptr) << gpu::why_none();
  }
  void TearDown() override { gpu::use_stand_ins(0); }

  const int n_ = GetParam();
};
INSTANTIATE_TEST_SUITE_P(Replicas, ReplicaGpusTest, testing::Values(1, 2, 4));

TEST_P(ReplicaGpusTest, EachKeepsItsGpuAndStream) {
  GpuJob job(n_, "gpu");
  std::vector<const void*> before;
  for (int run = 0; run < 3; ++run) {
    const auto streams = job.strategy.run([](ReplicaContext& replica) {
      EXPECT_EQ(replica.device(), replica.replica_id_in_sync_group());
      EXPECT_EQ(replica.stream().device(), replica.device());
      return static_cast<const void*>(&replica.stream());
    });
    EXPECT_TRUE(run == 0 || streams.values == before);
    before = streams.values;
  }
}

TEST_P(ReplicaGpusTest, RunConsecutiveCollectivesWithoutSynchronization) {
  GpuJob job(n_, "gpu");
  const double sum = n_ * (n_ + 1) / 2.0;
  job.strategy.run([&](ReplicaContext& replica) {
    const int id = replica.replica_id_in_sync_group();
    const Doubles own{id + 1.0, 10.0};
    const DeviceArray<double> array = to_device(replica.stream(), own);
    const DeviceArray<double> gathered_array(replica.device(), 2 * static_cast<std::size_t>(n_));
    replica.all_reduce(ReduceOp::SUM, array.span());
    replica.all_reduce(ReduceOp::MEAN, array.span());
    replica.all_gather(array.span(), gathered_array.span());
    Doubles gathered;
    for (int i = 0; i < n_; ++i) gathered.insert(gathered.end(), {sum, 10.0 * n_});
    EXPECT_EQ(to_host(replica.stream(), gathered_array.span()), gathered);

    copy(replica.stream(), array.span(), own);
    replica.broadcast(array.span(), n_ - 1);
    EXPECT_EQ(to_host(replica.stream(), array.span()), (Doubles{static_cast<double>(n_), 10}));
    replica.all_reduce("sum", array.span().subspan(0, 0));

    const DeviceArray<std::uint8_t> bytes = to_device(replica.stream(), std::vector<std::uint8_t>{200});
    replica.all_reduce(ReduceOp::SUM, bytes.span());
    EXPECT_EQ(to_host(replica.stream(), bytes.span())[0], static_cast<std::uint8_t>(200 * n_));
    EXPECT_THAT(error_of(Code::invalid_argument, [&] { replica.all_reduce(ReduceOp::MEAN, bytes.span()); }),
                AllOf(HasSubstr("uint8"), HasSubstr("mean")));
    replica.wait();
  });
}

TEST_P(ReplicaGpusTest, ReadAndPushOncePerWorker) {
  GpuJob job(n_, "gpu");
  const auto scope = job.strategy.scope();
  const Variable<float> w("w", Shape{5, 3}, initializers::constant(1), {optimizers::SGD{1}});
  const Variable<double> other("other", Shape{1}, initializers::constant(1), {optimizers::SGD{1}});
  const auto before = job.traffic();
  job.strategy.run([&](ReplicaContext& replica) {
    const DeviceArray<float> values(replica.device(), 15);
    replica.pull_once(w, values.span());
    EXPECT_EQ(to_host(replica.stream(), values.span()), std::vector<float>(15, 1));
    const auto id = static_cast<float>(replica.replica_id_in_sync_group());
    const auto gradient = to_device(replica.stream(), std::vector<float>(15, id + 1));
    replica.push_dense_once(ReduceOp::MEAN, w, gradient.span());
    const float mean = static_cast<float>(n_ + 1) / 2;
    EXPECT_EQ(to_host(replica.stream(), gradient.span()), std::vector<float>(15, mean));
    EXPECT_THROW(replica.pull_once(w, values.span().subspan(0, 14)), Error);
  });
  EXPECT_EQ(job.traffic().pull.rows - before.pull.rows, 5U);
  EXPECT_EQ(job.traffic().push.rows - before.push.rows, 5U);
  w.flush();
  EXPECT_EQ(w.pull(), std::vector<float>(15, 1 - static_cast<float>(n_ + 1) / 2));
  if (n_ == 1) return;
  EXPECT_THAT(error_of(Code::failed_precondition,
                       [&] {
                         job.strategy.run([&](ReplicaContext& replica) {
                           const DeviceArray<double> one(replica.device(), 1);
                           const DeviceArray<float> all(replica.device(), 15);
                           if (replica.replica_id_in_sync_group() == 1) {
                             replica.pull_once(other, one.span());
                           } else {
                             replica.pull_once(w, all.span());
                           }
                         });
                       }),
              NamesAll({"replica 1", "pull_once", "variable \"other\"", "replica 0", "variable \"w\""}));
}

TEST_P(ReplicaGpusTest, MismatchedCallsFailOnAllReplicasAndTheNextRunWorks) {
  if (n_ == 1) return;
  GpuJob job(n_, "gpu", "300ms");
  const auto run = [&](Code code, auto odd) {
    return error_of(code, [&] {
      job.strategy.run([&](ReplicaContext& replica) {
        const DeviceArray<float> array = to_device(replica.stream(), std::vector<float>{1, 2});
        if (replica.replica_id_in_sync_group() == 1) return odd(replica, array.span());
        replica.all_reduce(ReduceOp::SUM, array.span());
      });
    });
  };
  using Span = DeviceSpan<float>;
  EXPECT_THAT(run(Code::invalid_argument,
                  [](auto& replica, Span span) { replica.all_reduce(ReduceOp::SUM, span.subspan(0, 1)); }),
              HasSubstr("all_reduce: the size of replica 1 is 1"));
  EXPECT_THAT(run(Code::failed_precondition,
                  [](auto& replica, Span span) { replica.all_reduce(ReduceOp::MEAN, span); }),
              NamesAll({"replica 1", "all_reduce MEAN", "replica 0", "all_reduce SUM"}));
  EXPECT_THAT(run(Code::failed_precondition,
                  [](auto& replica, Span) {
                    const DeviceArray<double> array(replica.device(), 2);
                    replica.all_reduce(ReduceOp::SUM, array.span());
                  }),
              NamesAll({"replica 1", "all_reduce SUM", "replica 0", "type"}));
  EXPECT_THAT(run(Code::failed_precondition, [](auto&, Span) {}),
              NamesAll({"replica 1", "all_reduce SUM", "returned"}));
  EXPECT_EQ(run(Code::data_loss, [](auto&, Span) { throw Error(Code::data_loss, "a bad record"); }),
            "a bad record");
  // Longer than the timeout of 300 ms.
  EXPECT_THAT(run(Code::deadline_exceeded, [](auto&, Span) { std::this_thread::sleep_for(1s); }),
              NamesAll({"300 ms", "all_reduce SUM", "replica 1"}));
  job.strategy.run([&](ReplicaContext& replica) {
    const DeviceArray<float> array = to_device(replica.stream(), std::vector<float>{1, 2});
    const DeviceArray<float> small(replica.device(), 3);
    EXPECT_THAT(error_of(Code::invalid_argument, [&] { replica.all_gather(array.span(), small.span()); }),
                NamesAll({"all_gather", "replica 0", "3", std::to_string(2 * n_)}));
    EXPECT_THROW(replica.broadcast(array.span(), n_), Error);
    replica.all_reduce(ReduceOp::SUM, array.span());
    EXPECT_EQ(to_host(replica.stream(), array.span())[1], static_cast<float>(2 * n_));
  });
}

TEST_P(ReplicaGpusTest, GpuErrorEndsTheRunAndTheNextRunWorks) {
  if (n_ == 1 || stand_ins_for(n_) == 0) return;
  GpuJob job(n_, "gpu", "2s");  // a run without errors may take a second on a busy machine
  const auto run = [&](const std::function<void()>& work, bool waits) {
    return [&job, work, waits] {
      job.strategy.run([&](ReplicaContext& replica) {
        const DeviceArray<float> array = to_device(replica.stream(), std::vector<float>{1, 2});
        if (replica.replica_id_in_sync_group() == 1) {
          for (int i = 0; i < 200; ++i) replica.stream().implementation().stand_in()->enqueue(work);
        }
        replica.all_reduce(ReduceOp::SUM, array.span());
        if (waits) replica.wait();
      });
    };
  };
  for (const bool waits : {false, true}) {
    EXPECT_THAT(error_of(Code::internal, run([] { throw std::runtime_error("lost"); }, waits)),
                HasSubstr("lost"));
  }
  // 5 s, far longer than the timeout of 2 s: a replica that polls may starve the others of their first poll.
  const auto first = std::make_shared<std::optional<Clock::time_point>>();
  const auto delay = [first] {
    if (!*first) *first = Clock::now();
    // Sleeps, because the work of a stand-in is a function that takes time.
    if (Clock::now() < **first + 5s) std::this_thread::sleep_for(60ms);
  };
  EXPECT_THAT(error_of(Code::deadline_exceeded, run(delay, true)),
              NamesAll({"GPU 1", "all_reduce", "2 float32", "2000 ms"}));
  run([] {}, true)();
}

TEST(ReplicaGpus, RequireAGpuPerReplica) {
  Settings settings;
  settings.set_from_flag("ps", "1");
  settings.set_from_flag("gpu-stand-ins", "1");
  transport::LoopHub hub;
  const auto ranks = cluster::Runtime::as_threads(settings, 3, hub);
  EXPECT_EQ(strategy::ReplicaGpus(*ranks.back(), 1).device(0), 0);
  const std::string error =
      error_of(Code::failed_precondition, [&] { strategy::ReplicaGpus(*ranks.back(), 2); });
  EXPECT_THAT(error, NamesAll({"--replica-device=gpu", "--replicas=2", "2 GPUs", "1"}));
  gpu::use_stand_ins(0);
}

TEST(ReplicaGpus, HostReplicasHaveNoGpu) {
  GpuJob job(2, "host");
  job.strategy.run([](ReplicaContext& replica) {
    EXPECT_THAT(error_of(Code::failed_precondition, [&] { (void)replica.device(); }),
                HasSubstr("--replica-device=gpu"));
  });
  gpu::use_stand_ins(0);
}

// Logistic regression: 48 examples of 6 features, float64, each replica has a part of the examples.

constexpr std::size_t kFeatures = 6, kExamples = 48;

struct Examples {
  std::vector<Doubles> x;
  Doubles y;
};
const Examples& examples() {
  static const Examples made = [] {
    std::mt19937 random(3);
    std::normal_distribution<double> normal;
    Examples drawn;
    for (std::size_t i = 0; i < kExamples; ++i) {
      Doubles x(kFeatures);
      for (double& value : x) value = normal(random);
      drawn.y.push_back(x[0] - 2 * x[1] + 0.5 * normal(random) > 0 ? 1 : 0);
      drawn.x.push_back(std::move(x));
    }
    return drawn;
  }();
  return made;
}

/// The mean gradient of a replica's examples.
Doubles gradient_at(const Doubles& w, int replica, int replicas) {
  const std::size_t count = kExamples / static_cast<std::size_t>(replicas);
  const std::size_t first = static_cast<std::size_t>(replica) * count;
  Doubles gradient(kFeatures);
  for (std::size_t i = first; i < first + count; ++i) {
    const Doubles& x = examples().x[i];
    double z = 0;
    for (std::size_t k = 0; k < kFeatures; ++k) z += w[k] * x[k];
    const double error = 1 / (1 + std::exp(-z)) - examples().y[i];
    for (std::size_t k = 0; k < kFeatures; ++k) gradient[k] += error * x[k] / static_cast<double>(count);
  }
  return gradient;
}

void step_on_host(const Variable<double>& w) {
  get_replicas().run([&](ReplicaContext& replica) {
    const auto gradient =
        gradient_at(w.pull(), replica.replica_id_in_sync_group(), replica.num_replicas_in_sync());
    const Doubles mean = replica.all_reduce(ReduceOp::MEAN, gradient);
    replica.on_first_replica([&] { w.push_dense(mean); });
  });
}

void step_on_gpus(const Variable<double>& w) {
  get_replicas().run([&](ReplicaContext& replica) {
    const DeviceArray<double> array(replica.device(), kFeatures);
    replica.pull_once(w, array.span());
    const auto gradient = gradient_at(to_host(replica.stream(), array.span()),
                                      replica.replica_id_in_sync_group(), replica.num_replicas_in_sync());
    copy(replica.stream(), array.span(), gradient);
    replica.push_dense_once(ReduceOp::MEAN, w, array.span());
  });
}

template <auto* kStep>
Doubles trained(int replicas, const std::string& replica_device) {
  GpuJob job(replicas, replica_device);
  const auto scope = job.strategy.scope();
  ClusterCoordinator coordinator(job.strategy);
  const Variable<double> w("w", Shape{static_cast<std::int64_t>(kFeatures)}, initializers::zeros(),
                           {optimizers::SGD{.learning_rate = 0.5}});
  for (int step = 0; step < 25; ++step) {
    coordinator.schedule<kStep>(w);
    coordinator.join();
  }
  return w.pull();
}

TEST(ReplicaGpus, TrainTheSameModelAsHostReplicas) {
  const Doubles one = trained<&step_on_host>(1, "host");
  EXPECT_GT(one[0], 0.5);
  EXPECT_LT(one[1], -1);
  for (const int replicas : {1, 2, 4}) {
    const Doubles on_host = trained<&step_on_host>(replicas, "host");
    const Doubles on_gpus = trained<&step_on_gpus>(replicas, "gpu");
    gpu::use_stand_ins(0);
    for (std::size_t k = 0; k < kFeatures; ++k) {
      EXPECT_NEAR(on_gpus[k], on_host[k], 1e-12) << replicas << " replicas";
      EXPECT_NEAR(on_gpus[k], one[k], 1e-9) << replicas << " replicas";
    }
  }
}

}  // namespace
}  // namespace capstan
