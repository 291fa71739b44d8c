// cancellation_test.cpp -- cancellation requests and callbacks on the thread that runs a function.
#include "capstan/cancellation.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "base/cancellation_request.hpp"
#include "support/expect_error.hpp"

namespace capstan {
namespace {

TEST(Cancellation, IsNotRequestedOutsideAScope) {
  EXPECT_FALSE(cancelled());
  EXPECT_NO_THROW(throw_if_cancelled());
  bool called = false;
  {
    const CancellationCallback callback([&] { called = true; });
  }
  EXPECT_FALSE(called);
}

TEST(Cancellation, IsVisibleOnlyToThreadsInItsScope) {
  CancellationRequest request;
  const CancellationScope scope(&request);
  EXPECT_FALSE(cancelled());
  request.request();
  EXPECT_TRUE(cancelled());
  (void)error_of(Code::cancelled, [] { throw_if_cancelled(); });
  std::jthread([] { EXPECT_FALSE(cancelled()); }).join();
  {
    const CancellationScope cleaning_up(nullptr);
    EXPECT_FALSE(cancelled());
  }
  EXPECT_TRUE(cancelled());
}

TEST(Cancellation, RunsACallbackOnceAndNotAfterItsDestruction) {
  CancellationRequest request;
  const CancellationScope scope(&request);
  int calls = 0;
  int calls_of_destroyed = 0;
  {
    const CancellationCallback destroyed([&] { ++calls_of_destroyed; });
  }
  const CancellationCallback callback([&] { ++calls; });
  request.request();
  request.run_callbacks();
  request.run_callbacks();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(calls_of_destroyed, 0);
  int immediate_calls = 0;
  const CancellationCallback immediate([&] { ++immediate_calls; });
  EXPECT_EQ(immediate_calls, 1);
}

}  // namespace
}  // namespace capstan
