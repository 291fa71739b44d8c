// report_test.cpp -- merging of findings, exit codes, text and JSON of the report; running of checks.
#include "launch/doctor/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>

#include "capstan/serialize.hpp"
#include "launch/doctor/checks.hpp"
#include "support/expect_error.hpp"

namespace capstan::launch::doctor {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Finding of(const char* check, Finding finding) {
  finding.check = check;
  return finding;
}

/// Three ranks on two hosts; the rank on n2 has a lower memlock limit.
Report three_ranks() {
  const Finding good = of("memlock", pass("8 MiB"));
  const Finding bad = of("memlock", warn("64 KiB", "raise it"));
  Report report{.ranks = 3, .hosts = {"n1", "n2"}};
  report.add({{0, "n1", {of("mpi", pass("4.1")), good}},
              {1, "n1", {of("mpi", pass("4.1")), good}},
              {2, "n2", {of("mpi", pass("4.1")), bad}}});
  return report;
}

TEST(Report, MergesEqualFindings) {
  const Report report = three_ranks();
  ASSERT_EQ(report.lines.size(), 3u);
  EXPECT_THAT(report.lines[0].ranks, ElementsAre(0, 1, 2));
  EXPECT_THAT(report.lines[0].hosts, ElementsAre("n1", "n2"));
  EXPECT_THAT(report.text(),
              AllOf(HasSubstr("PASS  mpi            4.1 [3 ranks on n1, n2]\n"),
                    HasSubstr("PASS  memlock        8 MiB [2 ranks on n1]\n"),
                    HasSubstr("WARN  memlock        64 KiB [rank 2 on n2]\n"), HasSubstr("fix: raise it\n"),
                    HasSubstr("2 PASS, 1 WARN, 0 FAIL, 0 SKIP\n")));
}

TEST(Report, ColorsVerdictsOnly) {
  Report report;
  report.add({.check = "memlock", .verdict = Verdict::pass, .observed = "unlimited"});
  report.add({.check = "ucx", .verdict = Verdict::fail, .observed = "too old", .fix = "update it"});
  const std::string text = report.text(true);
  EXPECT_THAT(text, AllOf(HasSubstr("\x1b[32mPASS\x1b[0m  memlock"), HasSubstr("\x1b[31mFAIL\x1b[0m  ucx")));
  EXPECT_THAT(report.text(), Not(HasSubstr("\x1b")));
}

TEST(Report, SortsFindingsOfACheckBySeverity) {
  const std::string text = three_ranks().text();
  EXPECT_LT(text.find("WARN  memlock"), text.find("PASS  memlock"));
  EXPECT_LT(text.find("PASS  mpi"), text.find("WARN  memlock"));
}

TEST(Report, MergesFindingsWithEqualGroupKeys) {
  Finding one = of("dev-shm", pass("8 GiB, 7 GiB free"));
  Finding other = of("dev-shm", pass("8 GiB, 6 GiB free"));
  one.group_key = other.group_key = "8 GiB";
  Report report{.ranks = 2, .hosts = {"n1", "n2"}};
  report.add({{0, "n1", {one}}, {1, "n2", {other}}});
  EXPECT_THAT(report.text(), AllOf(HasSubstr("7 GiB free [2 ranks on n1, n2]"), Not(HasSubstr("6 GiB"))));
}

TEST(Report, TruncatesLongHostLists) {
  Report report{.ranks = 10, .hosts = {}};
  for (int i = 0; i < 10; ++i) report.hosts.push_back("n" + std::to_string(i));
  std::vector<RankFindings> all;
  for (int i = 0; i < 10; ++i)
    all.push_back({i, report.hosts[static_cast<std::size_t>(i)], {of("mpi", pass("4.1"))}});
  report.add(all);
  EXPECT_THAT(report.text(),
              AllOf(HasSubstr("[10 ranks on n0, n1, n2, n3, n4, n5 and 4 more]"), Not(HasSubstr("n6"))));
}

TEST(Report, OnlyAFailureChangesTheExitCode) {
  Report report;
  report.add(of("mpi", pass("")));
  report.add(of("ucx", skip("")));
  report.add(of("memlock", warn("", "")));
  EXPECT_EQ(report.exit_code(), 0);
  report.add(of("ranks", fail("", "")));
  EXPECT_EQ(report.exit_code(), 3);
}

TEST(Report, JsonHasTheSameContent) {
  const nlohmann::json json = three_ranks().json();
  EXPECT_EQ(json["ranks"], 3);
  EXPECT_EQ(json["exit_code"], 0);
  ASSERT_EQ(json["checks"].size(), 3u);
  EXPECT_EQ(json["checks"][1], (nlohmann::json{{"check", "memlock"},
                                               {"verdict", "WARN"},
                                               {"observed", "64 KiB"},
                                               {"fix", "raise it"},
                                               {"ranks", {2}},
                                               {"hosts", {"n2"}}}));
  EXPECT_FALSE(json["checks"][2].contains("fix"));
}

TEST(Finding, SurvivesSerialization) {
  const auto got =
      from_bytes<RankFindings>(to_bytes(RankFindings{3, "n1", {of("mpi", warn("observed", "fix"))}}));
  ASSERT_EQ(got.findings.size(), 1u);
  EXPECT_EQ(got.findings[0].verdict, Verdict::warn);
  EXPECT_EQ(got.findings[0].fix, "fix");
}

TEST(Finding, CombineKeepsTheMoreSevereVerdict) {
  const Finding finding = combine(combine(pass("a"), fail("b", "fix b")), warn("c", "fix c"));
  EXPECT_EQ(finding.verdict, Verdict::fail);
  EXPECT_EQ(finding.observed, "a; b; c");
  EXPECT_EQ(finding.fix, "fix b; fix c");
}

TEST(Finding, FormatsBytes) {
  EXPECT_EQ(bytes_text(0), "0 bytes");
  EXPECT_EQ(bytes_text(65536), "64 KiB");
  EXPECT_EQ(bytes_text(8u << 20), "8 MiB");
  EXPECT_EQ(bytes_text(1536u << 20), "1.5 GiB");
  EXPECT_EQ(bytes_text(~std::uint64_t{0}), "unlimited");
}

TEST(Checks, ListsAndValidatesNames) {
  EXPECT_THAT(list_text(), AllOf(HasSubstr("memlock "), HasSubstr("checkpoint-dir "), HasSubstr("ranks ")));
  require_checks({"memlock", "ranks"});
  expect_error_naming(Code::invalid_argument, {"--only memlok", "memlock", "capstan doctor --list"},
                      [] { require_checks({"memlok"}); });
  EXPECT_TRUE(is_selected("mpi", {}));
  EXPECT_TRUE(is_selected("mpi", {"ucx", "mpi"}));
  EXPECT_FALSE(is_selected("mpi", {"ucx"}));
}

TEST(Checks, FailsIfTheTimeLimitExpires) {
  const auto release = std::make_shared<std::promise<void>>();  // the thread outlives the test
  const Check hangs{"mpi", Scope::process, "", std::chrono::seconds(1), [release](const Request&) {
                      release->get_future().wait();
                      return pass("too late");
                    }};
  const Finding finding = run_check(hangs, {});
  release->set_value();
  EXPECT_EQ(finding.verdict, Verdict::fail);
  EXPECT_EQ(finding.check, "mpi");
  EXPECT_THAT(finding.observed, HasSubstr("within 1 s"));
}

TEST(Checks, FailsIfTheCheckThrows) {
  const Check throws{"mpi", Scope::process, "", std::chrono::hours(1),
                     [](const Request&) -> Finding { throw Error(Code::internal, "the reason"); }};
  const Finding finding = run_check(throws, {});
  EXPECT_EQ(finding.verdict, Verdict::fail);
  EXPECT_THAT(finding.observed, HasSubstr("the reason"));
}

}  // namespace
}  // namespace capstan::launch::doctor
