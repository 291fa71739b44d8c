// coordinator_watch_test.cpp -- selects the coordinator process whose messages a rank accepts.
#include "cluster/membership/coordinator_watch.hpp"

#include <gtest/gtest.h>

#include "capstan/serialize.hpp"
#include "cluster/runtime.hpp"
#include "transport/bytes.hpp"
#include "transport/loop/loop.hpp"

namespace capstan::cluster {
namespace {

class CoordinatorWatchTest : public testing::Test {
 protected:
  CoordinatorWatchTest() {
    Settings settings;
    settings.set_from_flag("ps", "1");
    runtimes_ = Runtime::as_threads(settings, 3, hub_);
  }

  Runtime& worker() { return *runtimes_[1]; }

  void greet(CoordinatorWatch& watch, std::int32_t incarnation) {
    watch.on_admission({.from = 0, .header = transport::as_bytes(incarnation), .payload = {}});
  }

  void return_as(CoordinatorWatch& watch, std::int32_t incarnation) {
    const auto bytes =
        to_bytes(CoordinatorReturned{incarnation, worker().member(Role::coordinator, 0), {}, {}});
    watch.on_announcement({.from = 0, .header = {}, .payload = bytes});
  }

 private:
  transport::LoopHub hub_;
  std::vector<std::shared_ptr<Runtime>> runtimes_;
};

TEST_F(CoordinatorWatchTest, GreetingIdentifiesTheProcess) {
  CoordinatorWatch watch(worker());
  EXPECT_EQ(watch.incarnation(), 0);
  greet(watch, 2);
  EXPECT_EQ(watch.incarnation(), 2);
}

TEST_F(CoordinatorWatchTest, IgnoresALateGreetingOfAnEarlierProcess) {
  CoordinatorWatch watch(worker());
  return_as(watch, 2);
  ASSERT_TRUE(watch.has_announcement());
  greet(watch, 1);
  EXPECT_EQ(watch.incarnation(), 2);
  EXPECT_EQ(watch.reconnect().incarnation, 2);
  greet(watch, 0);
  return_as(watch, 1);
  EXPECT_FALSE(watch.has_announcement());
  EXPECT_EQ(watch.incarnation(), 2);
}

}  // namespace
}  // namespace capstan::cluster
