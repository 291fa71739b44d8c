// peer_process_test.cpp -- the probe of a second process that is slow.
#include "launch/peer_process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "capstan/error.hpp"

namespace capstan::launch {
namespace {

using namespace std::chrono_literals;

TEST(PeerProcess, ErrorOfASlowProcessDoesNotNameTheStartTimeout) {
  // Sleeps for longer than the timeout of the probe; the destructor waits for the rest of it.
  PeerProcess peer([] { std::this_thread::sleep_for(1s); });
  try {
    peer.probe(transport::WindowPath::automatic, 50ms);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::deadline_exceeded);
    EXPECT_THAT(error.what(), testing::HasSubstr("within 50 ms"));
    EXPECT_THAT(error.what(), testing::Not(testing::HasSubstr("start-timeout")));
  }
}

}  // namespace
}  // namespace capstan::launch
