// plan_test.cpp -- the command line for each launch context.
#include "launch/run/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/expect_error.hpp"
#include "support/names_all.hpp"

namespace capstan::launch::run {
namespace {

using testing::HasSubstr;

const Mpi kOpenMpi{MpiKind::open_mpi, "4.1.4"};
const Mpi kMpich{MpiKind::mpich, "4.0.2"};
const std::vector<Host> kTwoHosts{{"n1", 4}, {"n2", 4}};

LaunchContext laptop(const Mpi& mpi = kOpenMpi) { return {.cores = 2, .mpi = mpi}; }

LaunchContext slurm(int tasks = 8, int hosts = 2) {
  return {.cores = 8,
          .mpi = kOpenMpi,
          .srun = true,
          .pmi = {"none", "pmi2", "pmix"},
          .allocation =
              Allocation{.job_id = "7", .tasks = tasks, .hosts = hosts, .max_tasks_per_host = tasks / hosts}};
}

Request request(Roles roles = {}, Launcher launcher = Launcher::automatic) {
  return {.program = {"prog", "a b"}, .launcher = launcher, .roles = roles};
}

Request with_hosts(Roles roles = {}) {
  Request wanted = request(roles);
  wanted.hosts = "hosts.txt";
  return wanted;
}

std::string plan(const Request& wanted, const LaunchContext& context, const std::vector<Host>& hosts = {}) {
  return make_plan(wanted, context, hosts).text();
}

std::string refusal(const Request& wanted, const LaunchContext& context, const std::vector<Host>& hosts = {},
                    Code code = Code::invalid_argument) {
  return error_of(code, [&] { (void)plan(wanted, context, hosts); });
}

TEST(OnThisHost, DefaultsToOneWorkerPerCoreAndOnePs) {
  EXPECT_EQ(
      plan(request(), laptop()),
      "CAPSTAN_PS=1 CAPSTAN_WORKERS=2 mpirun -n 4 --map-by slot:OVERSUBSCRIBE --bind-to none prog 'a b'");
  EXPECT_EQ(
      plan(request({.ps = 2, .workers = 3}), laptop()),
      "CAPSTAN_PS=2 CAPSTAN_WORKERS=3 mpirun -n 6 --map-by slot:OVERSUBSCRIBE --bind-to none prog 'a b'");
}

TEST(OnThisHost, AllowsRootForOpenMpi) {
  LaunchContext context = laptop();
  context.root = true;
  EXPECT_THAT(plan(request(), context), HasSubstr("mpirun --allow-run-as-root -n 4 "));
}

TEST(OnThisHost, MpichNeedsNoFlags) {
  LaunchContext context = laptop(kMpich);
  context.root = true;
  EXPECT_EQ(plan(request(), context), "CAPSTAN_PS=1 CAPSTAN_WORKERS=2 mpirun -n 4 prog 'a b'");
}

TEST(OnThisHost, CountsSparesReplicasAndEvaluatorAsRanks) {
  EXPECT_THAT(plan(request({.ps = 2, .workers = 3, .spares = 2, .evaluator = true}), laptop()),
              testing::AllOf(HasSubstr("CAPSTAN_SPARES=2 CAPSTAN_EVALUATOR=true"), HasSubstr("-n 9 ")));
  EXPECT_THAT(plan(request({.ps = 2, .workers = 3, .replicas = true}), laptop()), HasSubstr("-n 8 "));
}

TEST(OnThisHost, LocalRunsTheProgramAlone) {
  EXPECT_EQ(plan(request({}, Launcher::local), {}), "CAPSTAN_BOOTSTRAP=alone prog 'a b'");
  EXPECT_THAT(refusal(request({.ps = 2}, Launcher::local), {}),
              NamesAll({"--launcher local", "--ps", "CAPSTAN_PS"}));
}

TEST(OnThisHost, RejectsMissingLaunchers) {
  EXPECT_THAT(refusal(request(), {.cores = 2}, {}, Code::not_found),
              NamesAll({"mpirun", "--mpirun", "--launcher local"}));
  EXPECT_THAT(refusal(request(), {.cores = 2, .mpirun_version_line = "prterun 9"}, {}, Code::unimplemented),
              NamesAll({"\"prterun 9\"", "Open MPI", "MPICH", "--mpirun"}));
  EXPECT_THAT(refusal(request({}, Launcher::srun), laptop(), {}, Code::failed_precondition),
              NamesAll({"--launcher srun", "salloc"}));
  EXPECT_THAT(refusal(request({.roles_variable = "CAPSTAN_ROLES"}), laptop()), NamesAll({"CAPSTAN_ROLES"}));
}

TEST(OnSeveralHosts, StartsARankPerSlot) {
  LaunchContext context = laptop();
  context.cores = 4;
  context.forwarded_variables = {"CAPSTAN_PS", "UCX_TLS"};
  EXPECT_EQ(plan(with_hosts(), context, kTwoHosts),
            "mpirun -n 8 -H n1:4,n2:4 -x CAPSTAN_PS -x UCX_TLS prog 'a b'");
  EXPECT_EQ(plan(with_hosts({.ps = 3}), context, kTwoHosts),
            "CAPSTAN_PS=3 mpirun -n 8 -H n1:4,n2:4 -x CAPSTAN_PS -x UCX_TLS prog 'a b'");
  EXPECT_EQ(plan(with_hosts({.workers = 5}), context, kTwoHosts),
            "CAPSTAN_PS=2 CAPSTAN_WORKERS=5 mpirun -n 8 -H n1:4,n2:4 -x CAPSTAN_PS -x CAPSTAN_WORKERS -x "
            "UCX_TLS prog 'a b'");
}

TEST(OnSeveralHosts, DoesNotBindOversubscribedRanks) {
  EXPECT_THAT(plan(with_hosts(), laptop(), kTwoHosts),
              HasSubstr("--map-by slot:OVERSUBSCRIBE --bind-to none"));
}

TEST(OnSeveralHosts, CountsPsPerHost) {
  EXPECT_THAT(plan(with_hosts({.ps = 1, .workers = 4, .ps_per_host = true}), laptop(), kTwoHosts),
              HasSubstr("CAPSTAN_PS=1 CAPSTAN_WORKERS=4 mpirun -n 7 "));
  EXPECT_THAT(refusal(with_hosts({.ps = 4, .ps_per_host = true}), laptop(), kTwoHosts),
              NamesAll({"--hosts hosts.txt", "8", "10"}));
  EXPECT_THAT(plan(with_hosts({.roles_variable = "CAPSTAN_ROLE_FILE"}), laptop(), kTwoHosts),
              HasSubstr("mpirun -n 8 "));
}

TEST(OnSeveralHosts, UsesSyntaxOfMpich) {
  EXPECT_EQ(plan(with_hosts({.ps = 1, .workers = 2}), laptop(kMpich), kTwoHosts),
            "CAPSTAN_PS=1 CAPSTAN_WORKERS=2 mpirun -n 4 -hosts n1:4,n2:4 prog 'a b'");
}

TEST(OnSeveralHosts, ErrorsNameTheLimits) {
  EXPECT_THAT(refusal(with_hosts({.ps = 3, .workers = 6}), laptop(), kTwoHosts),
              NamesAll({"3 ps", "6 workers", "10", "--hosts hosts.txt", "8"}));
  EXPECT_THAT(refusal(with_hosts({.ps = 7}), laptop(), kTwoHosts), NamesAll({"--hosts hosts.txt", "8", "9"}));
  EXPECT_THAT(refusal(with_hosts(), laptop(), {{"n1", 1}}),
              NamesAll({"--hosts hosts.txt", "1", "3", "--launcher local"}));
  EXPECT_THAT(refusal(with_hosts(), slurm(), kTwoHosts), NamesAll({"--hosts", "7"}));
}

TEST(InSlurm, PrefersMpirun) {
  EXPECT_EQ(plan(request({.ps = 2}), slurm()), "CAPSTAN_PS=2 mpirun -n 8 -x CAPSTAN_PS prog 'a b'");
  EXPECT_EQ(plan(request(), slurm()), "mpirun -n 8 prog 'a b'");
}

TEST(InSlurm, UsesSrunOnRequestOrWithoutMpirun) {
  const std::string words =
      "srun --mpi=pmix --kill-on-bad-exit=0 --no-kill --export=ALL --ntasks=8 prog 'a b'";
  EXPECT_EQ(plan(request({}, Launcher::srun), slurm()), words);
  LaunchContext context = slurm();
  context.mpi.reset();
  EXPECT_EQ(plan(request(), context), words);
  context.allocation->cpus_per_task = 4;
  EXPECT_THAT(plan(request(), context), HasSubstr("--ntasks=8 --cpus-per-task=4 prog"));
  context.mpi = kMpich;
  EXPECT_THAT(plan(request({}, Launcher::srun), context), HasSubstr("srun --mpi=pmi2 "));
  context.mpi = kOpenMpi;
  context.pmi = {"none", "pmi2"};
  EXPECT_THAT(refusal(request({}, Launcher::srun), context, {}, Code::failed_precondition),
              NamesAll({"none", "pmi2", "pmix", "--launcher mpirun"}));
}

TEST(InSlurm, StartsHeterogeneousJobWithOneSrun) {
  LaunchContext context = slurm(6, 2);
  context.allocation->components = 2;
  EXPECT_EQ(plan(request({.ps = 2}), context),
            "CAPSTAN_PS=2 srun --mpi=pmix --kill-on-bad-exit=0 --no-kill --export=ALL "
            "--het-group=0-1 "
            "prog 'a b'");
  EXPECT_THAT(refusal(request({.ps = 1, .workers = 2}), context), NamesAll({"7", "6", "4"}));
  EXPECT_THAT(refusal(request({}, Launcher::mpirun), context), NamesAll({"--launcher mpirun", "srun"}));
}

TEST(InSlurm, ErrorsNameSlotsAndRemedy) {
  EXPECT_THAT(refusal(request(), slurm(1, 1)), NamesAll({"7", "1", "3", "--ntasks", "--launcher local"}));
  EXPECT_THAT(refusal(request({.workers = 9}), slurm()), NamesAll({"9 workers", "12", "7", "8"}));
}

TEST(Plan, IsQuotedForTheShell) {
  Plan plan{{"a", "", "it's", "$HOME", "x=1", "-f"}};
  EXPECT_EQ(plan.text(), "a '' 'it'\\''s' '$HOME' x=1 -f");
}

}  // namespace
}  // namespace capstan::launch::run
