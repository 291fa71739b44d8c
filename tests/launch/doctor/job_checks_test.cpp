// job_checks_test.cpp -- ranks compared: binaries, namespaces, cores, clocks.
#include "launch/doctor/job_checks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/serialize.hpp"

namespace capstan::launch::doctor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

RankFacts rank_on(const std::string& host, std::vector<int> cores = {0, 1, 2, 3}) {
  return {.host = host, .pid = 1, .binary = 7, .ipc_namespace = 5, .cores = std::move(cores)};
}

Verdict binding_of(const std::vector<RankFacts>& facts) {
  const auto findings = judge_binding(facts);
  return findings.size() == 1 ? findings[0].verdict : Verdict::skip;
}

TEST(JobChecks, GroupsRanksByHostInRankOrder) {
  const auto hosts = group_by_host({rank_on("b"), rank_on("a"), rank_on("b")});
  ASSERT_EQ(hosts.size(), 2u);
  EXPECT_EQ(hosts[0].host, "b");
  EXPECT_THAT(hosts[0].ranks, ElementsAre(0, 2));
}

TEST(JobChecks, FactsSurviveSerialization) {
  RankFacts facts = rank_on("n1", {2, 5});
  facts.port = 4711;
  const auto got = from_bytes<RankFacts>(to_bytes(facts));
  EXPECT_EQ(got.host, "n1");
  EXPECT_THAT(got.cores, ElementsAre(2, 5));
  EXPECT_EQ(got.port, 4711);
}

TEST(JobChecks, FailsIfBinariesDiffer) {
  std::vector<RankFacts> facts{rank_on("n1"), rank_on("n1"), rank_on("n2")};
  EXPECT_EQ(judge_binary(facts).verdict, Verdict::pass);
  facts[2].binary = 8;
  EXPECT_EQ(judge_binary(facts).verdict, Verdict::fail);
  EXPECT_THAT(judge_binary(facts).observed,
              HasSubstr("rank 2 (first on n2) runs a different build than rank 0 on n1"));
  EXPECT_EQ(judge_binary({rank_on("n1")}).verdict, Verdict::skip);
}

TEST(JobChecks, ComparesIpcNamespacesWithinAHost) {
  std::vector<RankFacts> facts{rank_on("n1"), rank_on("n1"), rank_on("n2")};
  facts[2].ipc_namespace = 6;  // on another host, so not compared
  EXPECT_EQ(judge_ipc(facts).verdict, Verdict::pass);
  facts[1].ipc_namespace = 6;
  EXPECT_EQ(judge_ipc(facts).verdict, Verdict::warn);
  EXPECT_EQ(judge_ipc({rank_on("n1"), rank_on("n2")}).verdict, Verdict::skip);
}

TEST(JobChecks, JudgesBindingPerHost) {
  EXPECT_EQ(binding_of({rank_on("n1"), rank_on("n1")}), Verdict::pass);                  // not bound
  EXPECT_EQ(binding_of({rank_on("n1", {0, 1}), rank_on("n1", {2, 3})}), Verdict::pass);  // bound apart
  EXPECT_EQ(binding_of({rank_on("n1", {0}), rank_on("n1", {1})}), Verdict::warn);  // bound to one core each
  EXPECT_EQ(binding_of({rank_on("n1", {0, 1}), rank_on("n1", {1, 2})}), Verdict::warn);  // share core 1
  EXPECT_EQ(binding_of({rank_on("n1", {0, 1}), rank_on("n1", {0, 1}), rank_on("n1", {0, 1})}), Verdict::warn);
  EXPECT_EQ(binding_of({rank_on("n1", {})}), Verdict::skip);
  EXPECT_EQ(judge_binding({rank_on("n1"), rank_on("n2")}).size(), 2u);
  EXPECT_THAT(judge_binding({rank_on("n1", {0, 1}), rank_on("n1", {1, 2})})[0].observed,
              HasSubstr("2 ranks are bound to core 1"));
}

TEST(JobChecks, SubtractsRoundTripFromClockSkew) {
  EXPECT_EQ(judge_clocks({}).verdict, Verdict::skip);
  EXPECT_EQ(judge_clocks({{"n2", 0.01, 0.001}, {"n3", -0.4, 0.001}}).verdict, Verdict::pass);
  EXPECT_EQ(judge_clocks({{"n2", 0.01, 0.001}, {"n3", -3.0, 0.001}}).verdict, Verdict::warn);
  EXPECT_THAT(judge_clocks({{"n2", 0.01, 0.001}, {"n3", -3.0, 0.001}}).observed,
              HasSubstr("n3 is 3.000 s behind"));
  EXPECT_EQ(judge_clocks({{"n2", 1.0, 0.9}}).verdict, Verdict::pass);
}

}  // namespace
}  // namespace capstan::launch::doctor
