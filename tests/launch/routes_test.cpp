// routes_test.cpp -- grouping and text of routes, including made-up machines with adapters.
#include "launch/routes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/serialize.hpp"
#include "support/expect_error.hpp"

namespace capstan::launch {
namespace {

using client::Path;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Route route(int worker, const std::string& host, const std::string& ps_host, Path path,
            const std::string& transports, bool hardware_rma = false) {
  return {"worker " + std::to_string(worker), host, "ps 0", ps_host, path, transports, hardware_rma};
}

TEST(Routes, GroupsRoutesByKind) {
  const std::vector<Route> routes{
      route(0, "n1", "n1", Path::mapped, "tcp/lo"), route(1, "n2", "n1", Path::messages, "tcp/eth0"),
      route(2, "n1", "n1", Path::mapped, "tcp/lo"), route(3, "n3", "n1", Path::messages, "tcp/eth0")};
  const std::string text = routes_text(routes, "auto");
  EXPECT_THAT(text, HasSubstr("2: worker 0 on n1 -> ps 0 on n1, worker 2 on n1 -> ps 0 on n1\n"));
  EXPECT_THAT(text, HasSubstr("2: worker 1 on n2 -> ps 0 on n1, worker 3 on n3 -> ps 0 on n1\n"));
  EXPECT_LT(text.find("ps on this host        mapped memory"),
            text.find("ps on another host     active messages over tcp/eth0"));
  EXPECT_EQ(text.find("ps on this host"), text.rfind("ps on this host"));
  EXPECT_EQ(text.find("ps on another host"), text.rfind("ps on another host"));
}

TEST(Routes, TruncatesLongLists) {
  std::vector<Route> routes;
  for (int i = 0; i < 100; ++i) routes.push_back(route(i, "n1", "n1", Path::mapped, "tcp/lo"));
  EXPECT_THAT(routes_text(routes, "auto"),
              AllOf(HasSubstr("100: worker 0 on"), HasSubstr(", ...\n"), Not(HasSubstr("worker 50 on"))));
}

TEST(Routes, PrintsVerdictOfRequireTransport) {
  const auto verdict = [](const Route& route) { return routes_text({route}, "auto"); };
  EXPECT_THAT(verdict(route(0, "n1", "n1", Path::mapped, "rc_mlx5/mlx5_0:1", true)),
              HasSubstr("mapped and rdma accept it"));
  EXPECT_THAT(verdict(route(0, "n2", "n1", Path::rma, "rc_mlx5/mlx5_0:1", true)),
              AllOf(HasSubstr("ps on another host     remote memory access over rc_mlx5/mlx5_0:1\n"),
                    HasSubstr("rdma accepts it, mapped refuses it")));
  EXPECT_THAT(verdict(route(0, "n2", "n1", Path::rma, "tcp/eth0", false)),
              AllOf(HasSubstr("emulated remote memory access over tcp/eth0"),
                    HasSubstr("mapped and rdma refuse it")));
  EXPECT_THAT(verdict(route(0, "n2", "n1", Path::messages, "tcp/eth0")),
              HasSubstr("mapped and rdma refuse it"));
  // Within a host, "rdma" requires mapped memory: loopback through an adapter does not count.
  EXPECT_THAT(verdict(route(0, "n1", "n1", Path::rma, "rc_mlx5/mlx5_0:1", true)),
              HasSubstr("mapped and rdma refuse it"));
}

TEST(Routes, RequireRoutesThrowsIfARunWouldFail) {
  const std::vector<Route> routes{route(0, "n1", "n1", Path::mapped, "tcp/lo"),
                                  route(1, "n2", "n1", Path::rma, "dc_mlx5/mlx5_0:1", true)};
  require_routes(routes, "any");
  require_routes(routes, "rdma");
  expect_error_naming(Code::failed_precondition,
                      {"--require-transport=mapped", "worker 1 on n2", "ps 0 on n1"},
                      [&] { require_routes(routes, "mapped"); });
  Route none = routes[0];
  none.failure = "ps 0 is dead";
  none.code = static_cast<std::int32_t>(Code::unavailable);
  expect_error(Code::unavailable, "ps 0 is dead", [&] { require_routes({none}, "any"); });
  EXPECT_THAT(routes_text({none}, "auto"), AllOf(HasSubstr("unreachable"), HasSubstr("ps 0 is dead")));
}

TEST(Routes, GroupsFailuresByCode) {
  std::vector<Route> routes{route(0, "n1", "n2", Path::messages, ""),
                            route(1, "n1", "n3", Path::messages, "")};
  for (Route& failed : routes) {
    failed.failure = "memory of the ps on " + failed.to_host + " cannot be mapped";
    failed.code = static_cast<std::int32_t>(Code::unavailable);
  }
  EXPECT_THAT(routes_text(routes, "mapped"),
              AllOf(HasSubstr("memory of the ps on n2 cannot"), Not(HasSubstr("memory of the ps on n3")),
                    HasSubstr("2: worker 0 on n1 -> ps 0 on n2, worker 1 on n1 -> ps 0 on n3\n")));
}

TEST(Routes, SurvivesSerialization) {
  Route sent = route(3, "n1", "n2", Path::rma, "rc_mlx5/mlx5_0:1", true);
  sent.failure = "why";
  sent.code = 4;
  const auto got = from_bytes<Route>(to_bytes(sent));
  EXPECT_EQ(routes_text({got}, "auto"), routes_text({sent}, "auto"));
  EXPECT_EQ(got.code, 4);
  EXPECT_TRUE(got.hardware_rma);
}

TEST(Offers, GroupsHostsWithEqualOffers) {
  const transport::UcxOffer adapters{"1.15.0",        "all", "all", {"tcp/ib0", "rc_mlx5/mlx5_0:1"},
                                     {"sysv/memory"}, {}};
  const transport::UcxOffer without{"1.15.0", "all", "all", {"tcp/eth0"}, {"sysv/memory"}, {}};
  const std::string text =
      offers_text({{"n1", adapters}, {"n2", without}, {"n3", adapters}, {"n1", adapters}});
  EXPECT_THAT(text, HasSubstr("UCX 1.15.0 on n1, n3, with UCX_TLS=all UCX_NET_DEVICES=all\n"));
  EXPECT_THAT(text, HasSubstr("UCX 1.15.0 on n2, with"));
  EXPECT_THAT(text, HasSubstr("hardware RMA         rc_mlx5/mlx5_0:1\n"));
  EXPECT_THAT(text, HasSubstr("hardware RMA         none (no rc or dc transport)\n"));
}

}  // namespace
}  // namespace capstan::launch
