// anonymizer_test.cpp -- planted names vanish, equal ones get equal placeholders, and other text stays.
#include "launch/report/anonymizer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "launch/report/doctor_section.hpp"
#include "launch/report/environment.hpp"
#include "launch/report/job_names.hpp"
#include "launch/report/known_names.hpp"

namespace capstan::launch::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Anonymizer with(Kind kind, std::initializer_list<const char*> names) {
  Anonymizer anonymizer;
  for (const char* name : names) anonymizer.add(kind, name);
  return anonymizer;
}

TEST(Anonymizer, GivesEqualNamesEqualPlaceholders) {
  Anonymizer anonymizer = with(Kind::host, {"alpha", "beta"});
  EXPECT_EQ(anonymizer.anonymize("alpha beta alpha"), "host-1 host-2 host-1");
  EXPECT_EQ(anonymizer.anonymize("BETA: alpha.example.org, alphabet"), "host-2: host-1, alphabet");
  EXPECT_EQ(anonymizer.replaced(Kind::host), 2U);
  EXPECT_EQ(anonymizer.replaced(Kind::user), 0U);
}

TEST(Anonymizer, ReplacesHostsOfTheSameSeries) {
  Anonymizer anonymizer = with(Kind::host, {"nid001.cluster.org"});
  EXPECT_EQ(anonymizer.anonymize("nid001 nid017 nid[001-004,9]"), "host-1 host-2 host-3");
  EXPECT_EQ(anonymizer.anonymize("nid, nidus1, anid1"), "nid, nidus1, anid1");
}

TEST(Anonymizer, PrefersTheLongestName) {
  Anonymizer anonymizer = with(Kind::host, {"login", "login-node", "logs", "nid001", "nid-a"});
  anonymizer.add(Kind::user, "login-n");
  EXPECT_EQ(anonymizer.anonymize("login-node login-n login-nodes login logs nid-a nid001 lo"),
            "host-1 user-1 host-2-nodes host-2 host-3 host-4 host-5 lo");
}

TEST(Anonymizer, KnowsManyHosts) {
  constexpr int kHosts = 65536;
  Anonymizer anonymizer;
  std::string text;
  for (int i = 0; i < kHosts; ++i) {
    const std::string host = "n" + std::to_string(i);  // too short for a series
    anonymizer.add(Kind::host, host);
    text += host + " ";
  }
  EXPECT_THAT(anonymizer.anonymize(text), HasSubstr(" host-65535 host-65536 "));
  EXPECT_EQ(anonymizer.replaced(Kind::host), 65536U);
}

TEST(Anonymizer, ReplacesUsersAndAccountsAsWords) {
  Anonymizer anonymizer = with(Kind::user, {"ada"});
  anonymizer.add(Kind::account, "proj42");
  EXPECT_EQ(anonymizer.anonymize("/scratch/ada/run ada_1 adapter proj42"),
            "/scratch/user-1/run user-1_1 adapter account-1");
}

TEST(Anonymizer, ReplacesPathsInHomeDirectories) {
  Anonymizer anonymizer = with(Kind::home_path, {"/gpfs/u/ada/"});
  EXPECT_EQ(anonymizer.anonymize("PATH=/gpfs/u/ada/bin:/usr/bin"), "PATH=home-path-1:/usr/bin");
  EXPECT_EQ(anonymizer.anonymize("\"/home/bob/x.h5\", /gpfs/u/ada"), "\"home-path-2\", home-path-3");
  EXPECT_EQ(anonymizer.anonymize("/gpfs/u/adam /home"), "/gpfs/u/adam /home");
  EXPECT_EQ(anonymizer.anonymize("-L/gpfs/u/ada/thesis"), "-Lhome-path-4");
}

TEST(Anonymizer, ReplacesASecretOf12CharactersAnywhere) {
  Anonymizer anonymizer = with(Kind::secret, {"hunter2hunt2", "ubuntu", "+key/12", "abc"});
  EXPECT_EQ(anonymizer.anonymize("xhunter2hunt2y"), "xsecret-1y");
  EXPECT_EQ(anonymizer.anonymize("ubuntu1 1ubuntu, ubuntu"), "ubuntu1 1ubuntu, secret-2");
  EXPECT_EQ(anonymizer.anonymize("a+key/12 +key/123"), "asecret-3 +key/123");
  EXPECT_EQ(anonymizer.anonymize("abc"), "abc") << "too short to be replaced";
}

TEST(Anonymizer, ReplacesTheValueButNotTheNameOfASecret) {
  Anonymizer anonymizer = with(Kind::user, {"ada"});
  EXPECT_EQ(anonymizer.anonymize("ada_token=xyz; --password pw"),
            "user-1_token=secret-1; --password secret-2");
}

TEST(Anonymizer, ReplacesAddresses) {
  Anonymizer anonymizer;
  EXPECT_EQ(anonymizer.anonymize("tcp://10.0.0.7:90 [fe80::2]:1 10.0.0.7 127.0.0.1"),
            "tcp://address-1:90 [address-2]:1 address-1 127.0.0.1");
  EXPECT_EQ(anonymizer.anonymize("ether 0c:42:a1:00:11:ff, ada@example.org"),
            "ether hardware-address-1, login-1");
  EXPECT_EQ(anonymizer.anonymize("Open MPI 4.1.4, libfoo.so.1.2.3.4, 12:30:00"),
            "Open MPI 4.1.4, libfoo.so.1.2.3.4, 12:30:00");
}

TEST(Anonymizer, ReplacesTheDomainOfAHost) {
  Anonymizer anonymizer = with(Kind::host, {"alpha.example.org", "beta.local"});
  EXPECT_EQ(anonymizer.anonymize("alpha.example.org gamma.example.org local"), "host-1 gamma.domain-1 local");
}

TEST(Anonymizer, ReplacesPasswords) {
  Anonymizer anonymizer = with(Kind::user, {"ada"});
  EXPECT_EQ(anonymizer.anonymize("x https://ada:pa/ss@example.org/x, password=\"correct horse\", y"),
            "x https://login-1/x, password=\"secret-1\", y");
  EXPECT_EQ(anonymizer.anonymize("Authorization: Bearer abc.def\ny"), "Authorization: secret-2\ny");
}

TEST(Anonymizer, DoesNotTakeAddressesForHosts) {
  Anonymizer anonymizer = with(Kind::host, {"10.0.0.1", "fe80::1", "77"});
  EXPECT_EQ(anonymizer.anonymize("10 rows, 77 rows, fe80::1"), "10 rows, 77 rows, address-1");
}

TEST(Anonymizer, ReplacesNumbersOfUsers) {
  Anonymizer anonymizer;
  EXPECT_EQ(anonymizer.anonymize("0::/user.slice/user-1234.slice/user@1234.service /slurm/uid_77/job_5"),
            "0::/user.slice/user-user-1.slice/user@user-1.service /slurm/uid_user-2/job_5");
  EXPECT_EQ(anonymizer.anonymize("user-0.slice user-1a"), "user-0.slice user-1a");
}

TEST(Anonymizer, KeepsNamesThatEveryHostHas) {
  Anonymizer anonymizer = with(Kind::user, {"root", ""});
  anonymizer.add(Kind::host, "localhost.localdomain");
  anonymizer.add(Kind::host, "host.docker.internal");
  anonymizer.add(Kind::home_path, "/");
  EXPECT_EQ(anonymizer.anonymize("root on localhost, host of /"), "root on localhost, host of /");
}

TEST(Anonymizer, ReplacesKeysInValuesOnly) {
  Anonymizer anonymizer;
  const std::string key = "eyJhbGciOiJIUzI1NiIsInR5cCI";
  EXPECT_EQ(anonymizer.anonymize(key), key);
  EXPECT_EQ(anonymizer.anonymize_value(key), "secret-1");
}

TEST(KnownNames, ComeFromVariables) {
  const std::array<const char*, 9> environment{"USER=plantuser",
                                               "HOME=/data/homes/plantuser",
                                               "SLURM_JOB_NODELIST=plant[1-2],other",
                                               "SLURM_SUBMIT_HOST=entry.example.org",
                                               "SLURM_JOB_ACCOUNT=plantproject",
                                               "SITE_TOKEN=plantedsecret",
                                               "EMPTY",
                                               "UCX_TLS=tcp",
                                               nullptr};
  Anonymizer anonymizer;
  add_known_names(anonymizer, environment.data());
  EXPECT_EQ(anonymizer.anonymize("plant2 other entry"), "host-1 host-2 host-3");
  EXPECT_EQ(anonymizer.anonymize("plantuser plantproject xplantedsecret"), "user-1 account-1 xsecret-1");
  EXPECT_EQ(anonymizer.anonymize("/data/homes/plantuser/a"), "home-path-1");
  EXPECT_EQ(anonymizer.anonymize("tcp"), "tcp");
}

TEST(KnownNames, ComeFromMetrics) {
  Anonymizer anonymizer;
  add_hosts_in_metrics(anonymizer, R"({"workers": [{"host": "gamma", "index": 0}], "hosts": 3})");
  add_hosts_in_metrics(anonymizer, "capstan_ps_rows{host=\"delta\"} 1\nhost of x \"y\"");
  EXPECT_EQ(anonymizer.anonymize("gamma delta index y"), "host-1 host-2 index y");
}

TEST(KnownNames, ComeFromLogs) {
  Anonymizer anonymizer;
  add_hosts_in_log(
      anonymizer,
      "[2026-11-30 10:00:00.000] [rank 3] [worker 0@gamma] [info] ps 1 (rank 2 on delta.example.org) "
      "died\n[10:00:00.000] [ps 1@eps7] [info] see mail@zeta]");
  EXPECT_EQ(anonymizer.anonymize("[worker 0@gamma] [info] gamma delta eps9 zeta on x.example.org"),
            "[worker 0@host-1] [info] host-1 host-2 host-3 zeta on x.domain-1");
}

TEST(KnownNames, AreInDoctorsReport) {
  Anonymizer anonymizer;
  const std::string report = R"({"hosts": ["gamma"], "lines": ["gamma is slow"]})";
  EXPECT_EQ(doctor_section(anonymizer, CommandOutput{0, report}), report);
  EXPECT_EQ(anonymizer.anonymize("gamma"), "host-1");
}

TEST(KnownNames, DoctorsReportIsLeftOutIfItsHostsAreUnknown) {
  Anonymizer anonymizer;
  for (const std::string text : {R"(a warning of delta
{"hosts": ["delta"]})",
                                 R"({"hosts": ["delta", "ep)", R"({"delta": 1})", R"(["delta"])"}) {
    const std::string section = doctor_section(anonymizer, CommandOutput{3, text});
    EXPECT_THAT(section, HasSubstr(std::to_string(text.size()) + " bytes and exit code 3"));
    EXPECT_THAT(section, Not(HasSubstr("delta")));
  }
  EXPECT_THAT(doctor_section(anonymizer, CommandOutput{2, ""}), HasSubstr("no output, exit code 2"));
  EXPECT_THAT(doctor_section(anonymizer, std::nullopt), HasSubstr("time limit"));
}

TEST(KnownNames, ComeFromVariablesThatHoldHosts) {
  const std::array<const char*, 11> environment{
      R"(TF_CONFIG={"cluster": {"worker": ["gamma:2222", "10.0.0.1:22"]}, "task": {"index": 0}})",
      "SLURM_JOB_NODELIST_HET_GROUP_0=delta[1-2]",
      "SLURM_NODE_ALIASES=eps:10.0.0.2:zeta,(null)",
      "SLURM_WORKING_CLUSTER=etaland:theta:6817:9984:109",
      "SLURM_CLUSTER_NAME=iotaland",
      "SLURM_TOPOLOGY_ADDR=switcha.kappa",
      "NCCL_COMM_ID=lambda.example.org:1234",
      "PMI_PORT=muhost:4444",
      "SLURMD_ACCOUNT=plantproject",
      "SITE_X=omega:1234",
      nullptr};
  Anonymizer anonymizer;
  add_known_names(anonymizer, environment.data());
  EXPECT_EQ(anonymizer.anonymize("gamma delta2 eps zeta theta kappa lambda muhost switcha"),
            "host-1 host-2 host-3 host-4 host-5 host-6 host-7 host-8 host-9");
  EXPECT_EQ(anonymizer.anonymize("etaland iotaland plantproject"), "domain-1 domain-2 account-1");
  EXPECT_EQ(anonymizer.anonymize("cluster task index 10 22 omega null"),
            "cluster task index 10 22 omega null");
}

TEST(ReportEnvironment, LeavesOutTheGroup) {
  const std::array<const char*, 2> environment{"SLURM_JOB_GROUP=planted", nullptr};
  Anonymizer anonymizer;
  EXPECT_EQ(environment_text(environment.data(), anonymizer), "(1 other variables are left out)\n");
}

TEST(ReportEnvironment, HasSelectedVariablesWithoutSecrets) {
  const std::array<const char*, 6> environment{"UCX_TLS=tcp",          "CAPSTAN_JOB_TOKEN=x1",
                                               "PRIVATE_NOTE=letter",  "SLURM_JOB_UID=1001",
                                               "CAPSTAN_X=a=10.0.0.9", nullptr};
  Anonymizer anonymizer;
  EXPECT_EQ(
      environment_text(environment.data(), anonymizer),
      "CAPSTAN_JOB_TOKEN=secret-1\nCAPSTAN_X=a=address-1\nUCX_TLS=tcp\n(2 other variables are left out)\n");
}

}  // namespace
}  // namespace capstan::launch::report
