// split_communicator_test.cpp -- a program that initializes MPI, with a cluster on each half of its ranks.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include "capstan/capstan.hpp"
#include "capstan/mpi.hpp"

namespace capstan {
namespace {

constexpr std::int64_t kRows = 30;
constexpr std::int64_t kWidth = 8;
constexpr int kClosures = 50;

/// Adds `step` to every element of every row, with an optimizer that subtracts; returns the sum that was
/// added.
double add_to_all_rows(double step, Variable<double> w) {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(kRows));
  std::iota(ids.begin(), ids.end(), 0);
  w.push(ids, std::vector<double>(static_cast<std::size_t>(kRows * kWidth), -step));
  return step;
}

/// The program of one half. Returns the sum of its variable after all closures, on the coordinator.
std::optional<double> run_half(const Cluster& cluster, double step) {
  if (cluster.role() != Role::coordinator) {
    EXPECT_EQ(Server(cluster).join(), 0);
    return std::nullopt;
  }
  ParameterServerStrategy strategy(cluster, {FixedShardsPartitioner{cluster.count(Role::ps)}});
  const auto scope = strategy.scope();
  // Both halves use the same name for independent variables.
  const Variable<double> w("w", Shape{kRows, kWidth}, initializers::constant(1), {optimizers::SGD{1.0}});
  ClusterCoordinator coordinator(strategy);
  std::vector<RemoteValue<double>> added;
  for (int i = 0; i < kClosures; ++i) added.push_back(coordinator.schedule<&add_to_all_rows>(step, w));
  coordinator.join();
  double sum = 0;
  for (const auto& value : added) sum += value.fetch();
  EXPECT_DOUBLE_EQ(sum, kClosures * step);
  const std::vector<double> values = w.pull();
  for (const double value : values) EXPECT_DOUBLE_EQ(value, 1 + kClosures * step);
  return std::accumulate(values.begin(), values.end(), 0.0);
}

struct World {
  int rank = 0;
  int size = 0;
  World() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
  }
};

TEST(SplitCommunicator, ClustersOnTwoHalvesRunConcurrently) {
  const World world;
  ASSERT_EQ(world.size, 6);
  const int half = world.rank % 2;
  MPI_Comm half_ranks = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, half, world.rank, &half_ranks);
  const double step = half + 1;
  double sum = 0;
  {
    const Cluster cluster = cluster_from(half_ranks);
    EXPECT_EQ(cluster.size(), 3);
    EXPECT_EQ(cluster.rank(), world.rank / 2);
    EXPECT_FALSE(cluster.embedded());
    EXPECT_EQ(cluster.role(), cluster.rank() == 0   ? Role::coordinator
                              : cluster.rank() == 1 ? Role::worker
                                                    : Role::ps);
    sum = run_half(cluster, step).value_or(0);
  }
  MPI_Comm_free(&half_ranks);

  // The program still owns MPI. Ranks 0 and 1 of the world were the coordinators.
  std::vector<double> sums(static_cast<std::size_t>(world.size));
  MPI_Allgather(&sum, 1, MPI_DOUBLE, sums.data(), 1, MPI_DOUBLE, MPI_COMM_WORLD);
  EXPECT_DOUBLE_EQ(sums[0], kRows * kWidth * (1 + kClosures * 1.0));
  EXPECT_DOUBLE_EQ(sums[1], kRows * kWidth * (1 + kClosures * 2.0));
  for (int rank = 2; rank < world.size; ++rank) EXPECT_EQ(sums[static_cast<std::size_t>(rank)], 0);
}

TEST(SplitCommunicator, AllRanksFormAnotherClusterAfterwards) {
  const World world;
  const Cluster cluster = cluster_from(MPI_COMM_WORLD);
  EXPECT_EQ(cluster.size(), world.size);
  const auto sum = run_half(cluster, 0.5);
  EXPECT_EQ(sum.has_value(), world.rank == 0);
  EXPECT_DOUBLE_EQ(sum.value_or(0), world.rank == 0 ? kRows * kWidth * (1 + kClosures * 0.5) : 0);
  EXPECT_EQ(MPI_Barrier(MPI_COMM_WORLD), MPI_SUCCESS);
}

TEST(SplitCommunicator, OneRankIsAnEmbeddedCluster) {
  const Cluster cluster = cluster_from(MPI_COMM_SELF);
  EXPECT_TRUE(cluster.embedded());
  EXPECT_DOUBLE_EQ(run_half(cluster, 2).value_or(0), kRows * kWidth * (1 + kClosures * 2.0));
}

TEST(SplitCommunicator, RejectsACommunicatorOfTwoRanks) {
  const World world;
  MPI_Comm pair = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, world.rank / 2, world.rank, &pair);
  try {
    (void)cluster_from(pair);
    ADD_FAILURE() << "two ranks were accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument) << error.what();
  }
  MPI_Comm_free(&pair);
}

}  // namespace
}  // namespace capstan
