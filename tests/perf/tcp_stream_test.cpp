// tcp_stream_test.cpp -- every byte of a sample arrives, for any sizes; broken and missing peers are errors.
#include "perf/bench/tcp_stream.hpp"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <optional>

#include "tests/support/expect_error.hpp"

namespace capstan::perf {
namespace {

/// Runs `sample` between a client and `count` servers in this process.
TcpTraffic traffic_of(const TcpExchange& sample, std::size_t count) {
  std::vector<std::unique_ptr<TcpServer>> servers;
  std::vector<std::string> addresses;
  for (std::size_t i = 0; i < count; ++i) {
    addresses.push_back(servers.emplace_back(std::make_unique<TcpServer>())->address());
  }
  std::optional<TcpClient> client(addresses);
  std::vector<std::future<void>> serving;
  for (const auto& server : servers) {
    server->accept(1);
    serving.push_back(std::async(std::launch::async, [&server] { server->serve(); }));
  }
  EXPECT_GT(client->seconds(sample), 0);
  const TcpTraffic traffic = client->traffic();
  client.reset();
  for (std::future<void>& one : serving) one.get();
  return traffic;
}

TEST(TcpStream, ServersCountAllBytesOfRequests) {
  for (const std::uint64_t polling : {0, 1}) {
    for (const std::size_t servers : {1, 3}) {
      const TcpTraffic traffic =
          traffic_of({.calls = 7, .request = 1'000'003, .piece = 61'440, .polling = polling}, servers);
      EXPECT_EQ(traffic.counted, 7U * 1'000'003) << polling << servers;
      EXPECT_EQ(traffic.answered, 0U);
    }
  }
}

TEST(TcpStream, AnswersArriveWithAnyNumberOfCallsInFlight) {
  for (const std::uint64_t polling : {0, 1}) {
    for (const std::uint64_t in_flight : {1, 4, 9}) {
      const TcpTraffic traffic = traffic_of({.calls = 9,
                                             .request = 4099,
                                             .answer = 300'007,
                                             .piece = 61'440,
                                             .source = 1'000'000,
                                             .in_flight = in_flight,
                                             .polling = polling},
                                            2);
      EXPECT_EQ(traffic.counted, 9U * 4099) << polling << in_flight;
      EXPECT_EQ(traffic.answered, 9U * 300'007) << polling << in_flight;
    }
  }
}

TEST(TcpStream, AServerWithoutItsClientsNamesTheirNumber) {
  TcpServer server;
  const TcpClient client({server.address()});
  expect_error_naming(Code::deadline_exceeded, {server.address(), "found 1 ", "expected 2"},
                      [&] { server.accept(2, std::chrono::milliseconds(50)); });
}

TEST(TcpStream, NoServerIsAnError) {
  std::string address;
  {
    const TcpServer closed;
    address = closed.address();
  }
  expect_error_naming(Code::unavailable, {address}, [&] { const TcpClient client({address}); });
}

}  // namespace
}  // namespace capstan::perf
