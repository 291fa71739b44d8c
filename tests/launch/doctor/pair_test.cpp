// pair_test.cpp -- selection of pairs and verdicts on them, including made-up machines with adapters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "capstan/serialize.hpp"
#include "launch/doctor/pair_judge.hpp"
#include "launch/doctor/pair_plan.hpp"

namespace capstan::launch::doctor {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(PairPlan, LimitsNumberOfNeighbors) {
  EXPECT_THAT(ring_neighbors(0, 1), IsEmpty());
  EXPECT_THAT(ring_neighbors(1, 3), ElementsAre(2, 0));
  EXPECT_THAT(ring_neighbors(0, 8), SizeIs(7));
  EXPECT_THAT(ring_neighbors(90, 100), ElementsAre(91, 92, 94, 98, 6, 22, 54));
}

TEST(PairPlan, OnlyTheLowerRankConnects) {
  EXPECT_THAT(connect_targets(0, 3), ElementsAre(1, 2));
  EXPECT_THAT(connect_targets(1, 3), ElementsAre(2));
  EXPECT_THAT(connect_targets(2, 3), IsEmpty());
  for (const int count : {2, 8, 9, 12, 100}) {
    std::set<int> met;
    std::set<Pair> pairs;
    for (int self = 0; self < count; ++self) {
      for (const int other : connect_targets(self, count)) {
        EXPECT_GT(other, self);
        EXPECT_TRUE(pairs.emplace(self, other).second);
        met.insert({self, other});
      }
      for (const int other : ring_neighbors(self, count))
        EXPECT_EQ(connect_targets(std::min(self, other), count).empty(), false) << self << " of " << count;
    }
    EXPECT_THAT(met, SizeIs(static_cast<std::size_t>(count)));
  }
}

TEST(PairPlan, SelectsRepresentativePairs) {
  EXPECT_THAT(representative_pairs({"a"}), IsEmpty());
  EXPECT_THAT(representative_pairs({"a", "a", "a"}), ElementsAre(Pair(0, 1)));
  EXPECT_THAT(representative_pairs({"a", "b"}), ElementsAre(Pair(0, 1)));
  EXPECT_THAT(representative_pairs({"a", "b", "a", "b"}), ElementsAre(Pair(0, 2), Pair(1, 3), Pair(0, 1)));
  EXPECT_THAT(representative_pairs({"a", "b", "c"}), ElementsAre(Pair(0, 1), Pair(1, 2), Pair(0, 2)));
}

TEST(PairPlan, RoundsAreDisjoint) {
  std::vector<std::string> hosts;
  for (int rank = 0; rank < 30; ++rank) hosts.push_back("n" + std::to_string(rank % 7));
  const auto pairs = representative_pairs(hosts);
  EXPECT_THAT(pairs, SizeIs(14));
  const auto rounds = disjoint_rounds(pairs);
  EXPECT_LE(rounds.size(), 4u);
  std::multiset<Pair> all;
  for (const auto& round : rounds) {
    std::multiset<int> ranks;
    for (const Pair& pair : round) {
      ranks.insert({pair.first, pair.second});
      all.insert(pair);
    }
    for (const int rank : ranks) EXPECT_EQ(ranks.count(rank), 1u);
  }
  EXPECT_EQ(all, std::multiset<Pair>(pairs.begin(), pairs.end()));
}

Link mapped(int from, int to) {
  return {.from = from, .to = to, .from_host = "n1", .to_host = "n1", .mapped = true, .transports = "tcp/lo"};
}
Link messages(int from, int to, const std::string& to_host) {
  return {.from = from, .to = to, .from_host = "n1", .to_host = to_host, .transports = "tcp/eth0"};
}
Link rdma(int from, int to) {
  return {.from = from,
          .to = to,
          .from_host = "n1",
          .to_host = "n2",
          .hardware_rma = true,
          .transports = "rc_mlx5/mlx5_0:1"};
}

Verdict verdict_of(const std::vector<Finding>& findings) {
  EXPECT_THAT(findings, SizeIs(1));
  return findings.empty() ? Verdict::pass : findings[0].verdict;
}

TEST(Links, GroupsLinksByKind) {
  const auto findings = judge_links({mapped(0, 1), messages(0, 2, "n2"), mapped(2, 3)}, {});
  ASSERT_THAT(findings, SizeIs(2));
  EXPECT_THAT(findings[0].observed,
              HasSubstr("same host: mapped memory, calls over tcp/lo (2 pairs, for example rank 0 -> 1)"));
  EXPECT_THAT(findings[1].observed,
              HasSubstr("other host: active messages over tcp/eth0 (1 pair, for example rank 0 -> 2)"));
}

TEST(Links, WarnsIfAFasterPathIsPossible) {
  EXPECT_EQ(verdict_of(judge_links({}, {})), Verdict::skip);
  EXPECT_EQ(verdict_of(judge_links({mapped(0, 1)}, {"n1", "n2"})), Verdict::pass);
  EXPECT_EQ(verdict_of(judge_links({messages(0, 1, "n1")}, {})), Verdict::warn);
  EXPECT_EQ(verdict_of(judge_links({messages(0, 1, "n2")}, {})), Verdict::pass);
  EXPECT_EQ(verdict_of(judge_links({messages(0, 1, "n2")}, {"n1", "n2"})), Verdict::warn);
  EXPECT_EQ(verdict_of(judge_links({rdma(0, 1)}, {"n1", "n2"})), Verdict::pass);
  Link none = messages(0, 1, "n2");
  none.failure = "rank 1 does not answer";
  EXPECT_EQ(verdict_of(judge_links({none}, {"n1", "n2"})), Verdict::fail);
  EXPECT_THAT(judge_links({none}, {"n1", "n2"})[0].observed,
              AllOf(HasSubstr("n1 -> n2"), HasSubstr("does not answer")));
}

TEST(Links, AnAdapterCountsOnlyIfBothHostsHaveOne) {
  const std::vector<Link> links{messages(0, 1, "n2"), messages(0, 2, "n3")};
  EXPECT_EQ(verdict_of(judge_links(links, {"n1"})), Verdict::pass);
  const auto findings = judge_links(links, {"n1", "n3"});
  ASSERT_THAT(findings, SizeIs(2));
  EXPECT_EQ(findings[0].verdict, Verdict::pass);
  EXPECT_EQ(findings[1].verdict, Verdict::warn);
  EXPECT_THAT(findings[1].observed, HasSubstr("for example rank 0 -> 2"));
}

TEST(RmaProbes, EmulatedRmaWarnsUnlessMapped) {
  EXPECT_EQ(verdict_of(judge_rma_probes({})), Verdict::skip);
  EXPECT_EQ(verdict_of(judge_rma_probes({{rdma(0, 1), true, 0.01}})), Verdict::pass);
  EXPECT_EQ(verdict_of(judge_rma_probes({{mapped(0, 1), false, 200}})), Verdict::pass);
  EXPECT_EQ(verdict_of(judge_rma_probes({{messages(0, 1, "n2"), false, 200}})), Verdict::warn);
  // A probe that did not complete determines the verdict of its kind.
  EXPECT_EQ(
      verdict_of(judge_rma_probes({{messages(0, 1, "n2"), true, 1}, {messages(2, 3, "n2"), false, 200}})),
      Verdict::warn);
}

TEST(Speeds, ComparesWithMemcpyOrLinkRate) {
  EXPECT_EQ(verdict_of(judge_speeds({})), Verdict::skip);
  EXPECT_EQ(verdict_of(judge_speeds({{mapped(0, 1), 20e-6, 9e9, 10e9, 0}})), Verdict::pass);
  EXPECT_EQ(verdict_of(judge_speeds({{mapped(0, 1), 20e-6, 1e9, 10e9, 0}})), Verdict::warn);
  EXPECT_EQ(verdict_of(judge_speeds({{mapped(0, 1), 900e-6, 9e9, 10e9, 0}})), Verdict::warn);
  // 10 Gbit/s equals 1.25 GB/s.
  EXPECT_EQ(verdict_of(judge_speeds({{messages(0, 1, "n2"), 50e-6, 1.1e9, 10e9, 10}})), Verdict::pass);
  EXPECT_EQ(verdict_of(judge_speeds({{messages(0, 1, "n2"), 50e-6, 0.1e9, 10e9, 10}})), Verdict::warn);
  EXPECT_EQ(verdict_of(judge_speeds({{messages(0, 1, "n2"), 50e-6, 0.1e9, 10e9, 0}})), Verdict::pass);
  EXPECT_EQ(verdict_of(judge_speeds({{rdma(0, 1), 2e-6, 23e9, 10e9, 200}})), Verdict::pass);
  EXPECT_EQ(verdict_of(judge_speeds({{rdma(0, 1), 2e-6, 3e9, 10e9, 200}})), Verdict::warn);
  EXPECT_EQ(verdict_of(judge_speeds({{rdma(0, 1), 25e-6, 23e9, 10e9, 200}})), Verdict::warn);
  EXPECT_THAT(
      judge_speeds({{rdma(0, 1), 2e-6, 23e9, 10e9, 200}})[0].observed,
      AllOf(HasSubstr("latency 2 us"), HasSubstr("bandwidth 23.0 GB/s"), HasSubstr("in /sys, 25.0 GB/s")));
}

TEST(Speeds, ReportsSlowestPairOfAKind) {
  const auto findings =
      judge_speeds({{mapped(0, 1), 20e-6, 9e9, 10e9, 0}, {mapped(4, 5), 20e-6, 8e9, 10e9, 0}});
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_THAT(findings[0].observed, HasSubstr("rank 4 -> 5"));
}

TEST(Speeds, JsonHasAllPairs) {
  Speed failed{messages(2, 3, "n2")};
  failed.link.failure = "why";
  const nlohmann::json json = measurements({{mapped(0, 1), 20e-6, 9e9, 12e9, 0}, failed});
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0]["class"], "same host");
  EXPECT_DOUBLE_EQ(json[0]["latency_us"].get<double>(), 20);
  EXPECT_DOUBLE_EQ(json[0]["expected"]["bytes_per_second"].get<double>(), 4e9);
  EXPECT_EQ(json[1]["failure"], "why");
  EXPECT_FALSE(json[1].contains("latency_us"));
}

TEST(Links, SurviveSerialization) {
  const auto got =
      from_bytes<std::vector<Speed>>(to_bytes(std::vector<Speed>{{rdma(3, 4), 1e-6, 2e9, 3e9, 100}}));
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].link.transports, "rc_mlx5/mlx5_0:1");
  EXPECT_TRUE(got[0].link.hardware_rma);
  EXPECT_EQ(got[0].link_gigabits, 100);
}

}  // namespace
}  // namespace capstan::launch::doctor
