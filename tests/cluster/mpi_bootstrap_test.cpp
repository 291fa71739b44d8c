// mpi_bootstrap_test.cpp -- the roll call over MPI on real ranks, some of which are missing.
#include "cluster/bootstrap/mpi_bootstrap.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include "capstan/error.hpp"
#include "capstan/serialize.hpp"
#include "cluster/runtime.hpp"
#include "support/expect_error.hpp"

namespace capstan::cluster {
namespace {

class MpiBootstrapTest : public testing::Test {
 protected:
  Hello hello() const {
    Hello out = make_hello();
    out.control_address = {std::byte(rank_)};
    return out;
  }
  const mpi::Communicator world_ = mpi::Communicator::world();
  const int rank_ = world_.rank();
};

TEST_F(MpiBootstrapTest, EveryRankGetsTheSameTable) {
  int calls = 0;
  const auto late = [&]() -> std::optional<Hello> {
    return ++calls < 5 ? std::nullopt : std::optional(hello());
  };
  const Table table = exchange(world_, late, std::chrono::seconds(20));
  EXPECT_EQ(table.rank, rank_);
  ASSERT_EQ(table.members.size(), 4U);
  EXPECT_FALSE(table.secret == transport::JobSecret());
  std::vector<std::byte> of_rank_0 = to_bytes(table.secret);
  world_.broadcast(of_rank_0);
  EXPECT_EQ(of_rank_0, to_bytes(table.secret));
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(table.members[static_cast<std::size_t>(rank)].control_address, std::vector{std::byte(rank)});
  }
}

TEST_F(MpiBootstrapTest, LeavesNoMessageInTheCommunicator) {
  std::vector<std::byte> go(1);
  for (int round = 0; round < 100; ++round) {
    (void)exchange(
        world_, [&] { return hello(); }, std::chrono::seconds(20));
    if (rank_ == 0) {
      for (const int tag : {17249, 17250, 17251}) EXPECT_FALSE(world_.take(tag).has_value()) << tag;
    }
    world_.broadcast(go);  // ranks that are ahead wait here
  }
}

TEST_F(MpiBootstrapTest, NamesMissingRanksOnEveryRank) {
  MPI_Barrier(MPI_COMM_WORLD);  // all other ranks report soon
  const auto source = [&]() -> std::optional<Hello> {
    return rank_ == 2 ? std::nullopt : std::optional(hello());
  };
  expect_error(Code::deadline_exceeded,
               "waited 3000 ms at the start (--start-timeout) for 1 of 4: rank 2 on " + host_name() +
                   " (its program has not opened its network)",
               [&] { (void)exchange(world_, source, std::chrono::seconds(3)); });
}

TEST_F(MpiBootstrapTest, AllRanksThrowTheErrorOfRankZero) {
  const auto odd = [&] {
    Hello out = hello();
    if (rank_ == 3) out.build = 1;
    return out;
  };
  EXPECT_EQ(
      error_of(Code::failed_precondition, [&] { (void)exchange(world_, odd, std::chrono::seconds(20)); })
          .substr(0, 9),
      "rank 3 on");
}

}  // namespace
}  // namespace capstan::cluster
