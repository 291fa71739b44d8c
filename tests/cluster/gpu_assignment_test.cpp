// gpu_assignment_test.cpp -- round-robin assignment of a host's GPUs to its ranks.
#include "cluster/roles/gpu_assignment.hpp"

#include <gtest/gtest.h>

#include "base/settings.hpp"
#include "capstan/error.hpp"
#include "gpu/gpu.hpp"
#include "transport/loop/loop.hpp"

namespace capstan::cluster {
namespace {

using Numbers = std::vector<int>;

TEST(GpusInTurn, AssignTheNextGpusToEachRank) {
  EXPECT_EQ(round_robin_gpus(0, 1, 4), Numbers{0});
  EXPECT_EQ(round_robin_gpus(3, 1, 4), Numbers{3});
  EXPECT_EQ(round_robin_gpus(5, 1, 4), Numbers{1});
  EXPECT_EQ(round_robin_gpus(1, 2, 4), (Numbers{2, 3}));
  EXPECT_EQ(round_robin_gpus(2, 2, 4), (Numbers{0, 1}));
  EXPECT_EQ(round_robin_gpus(1, 2, 3), (Numbers{2, 0}));
  EXPECT_EQ(round_robin_gpus(7, 2, 2), (Numbers{0, 1})) << "the launcher shows each rank only its own GPUs";
  EXPECT_THROW((void)round_robin_gpus(0, 3, 2), Error);
}

TEST(AssignedGpus, AreStandInsOnRequest) {
  Settings settings;
  settings.set_from_flag("ps", "2");
  settings.set_from_flag("gpu-stand-ins", "2");
  transport::LoopHub hub;
  const auto ranks = Runtime::as_threads(settings, 5, hub);
  int seen = 0;
  for (const auto& rank : ranks) {
    const Role role = rank->self().role;
    if (role != Role::ps && role != Role::worker) continue;
    ++seen;
    EXPECT_EQ(assigned_gpus(*rank, 1), Numbers{rank->self().index}) << rank->self().name();
    try {
      (void)assigned_gpus(*rank, 3);
      ADD_FAILURE() << "there are only two";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::failed_precondition);
      EXPECT_NE(std::string(error.what()).find(rank->self().name()), std::string::npos) << error.what();
    }
  }
  EXPECT_EQ(seen, 4);
  gpu::use_stand_ins(0);
}

}  // namespace
}  // namespace capstan::cluster
