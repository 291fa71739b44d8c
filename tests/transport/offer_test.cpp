// offer_test.cpp -- parsing of UCX's transport names.
#include "transport/ucx/offer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace capstan::transport {
namespace {

using testing::Contains;
using testing::ElementsAre;

TEST(Offer, ListsEachKindThatReachesOtherHostsOnce) {
  EXPECT_THAT(network_kinds({"posix/memory", "tcp/lo", "rc_mlx5/mlx5_0:1", "rc_mlx5/mlx5_1:1", "self/memory",
                             "tcp/eth0", "cuda_copy/cuda", "cma/memory", "ud_mlx5/mlx5_0:1"}),
              ElementsAre("tcp", "rc_mlx5", "ud_mlx5"));
  EXPECT_THAT(network_kinds({"self/memory"}), ElementsAre());
}

TEST(Offer, ThisHostHasANetwork) { EXPECT_THAT(network_kinds(ucx_offer().network), Contains("tcp")); }

}  // namespace
}  // namespace capstan::transport
