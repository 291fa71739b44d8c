// plan_test.cpp -- the command for each place, as it would be typed.
#include "launch/run/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "capstan/error.hpp"

namespace capstan::launch::run {
namespace {

using testing::HasSubstr;

const Mpi kOpenMpi{MpiKind::open_mpi, "4.1.4"};
const Mpi kMpich{MpiKind::mpich, "4.0.2"};
const std::vector<Host> kTwoHosts{{"n1", 4}, {"n2", 4}};

Place laptop(const Mpi& mpi = kOpenMpi) { return {.cores = 2, .mpi = mpi}; }

Place slurm(int tasks = 8, int hosts = 2) {
  return {.cores = 8,
          .mpi = kOpenMpi,
          .srun = true,
          .pmi = {"none", "pmi2", "pmix"},
          .allocation =
              Allocation{.job = "7", .tasks = tasks, .hosts = hosts, .most_tasks_on_a_host = tasks / hosts}};
}

Request request(Roles roles = {}, Launcher launcher = Launcher::automatic) {
  return {.program = {"prog", "a b"}, .launcher = launcher, .roles = roles};
}

Request with_hosts(Roles roles = {}) {
  Request wanted = request(roles);
  wanted.hosts = "hosts.txt";
  return wanted;
}

std::string plan(const Request& wanted, const Place& place, const std::vector<Host>& hosts = {}) {
  return make_plan(wanted, place, hosts).text();
}

std::string refusal(const Request& wanted, const Place& place, const std::vector<Host>& hosts = {}) {
  try {
    return "accepted: " + plan(wanted, place, hosts);
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(OnThisHost, OneWorkerACoreAndOnePs) {
  EXPECT_EQ(
      plan(request(), laptop()),
      "CAPSTAN_PS=1 CAPSTAN_WORKERS=2 mpirun -n 4 --map-by slot:OVERSUBSCRIBE --bind-to none prog 'a b'");
  EXPECT_EQ(
      plan(request({.ps = 2, .workers = 3}), laptop()),
      "CAPSTAN_PS=2 CAPSTAN_WORKERS=3 mpirun -n 6 --map-by slot:OVERSUBSCRIBE --bind-to none prog 'a b'");
}

TEST(OnThisHost, OpenMpiAsksRootForLeave) {
  Place place = laptop();
  place.root = true;
  EXPECT_THAT(plan(request(), place), HasSubstr("mpirun --allow-run-as-root -n 4 "));
}

TEST(OnThisHost, MpichNeedsNoFlags) {
  Place place = laptop(kMpich);
  place.root = true;
  EXPECT_EQ(plan(request(), place), "CAPSTAN_PS=1 CAPSTAN_WORKERS=2 mpirun -n 4 prog 'a b'");
}

TEST(OnThisHost, SparesReplicasAndTheEvaluatorAreRanksToo) {
  EXPECT_THAT(plan(request({.ps = 2, .workers = 3, .spares = 2, .evaluator = true}), laptop()),
              testing::AllOf(HasSubstr("CAPSTAN_SPARES=2 CAPSTAN_EVALUATOR=true"), HasSubstr("-n 9 ")));
  EXPECT_THAT(plan(request({.ps = 2, .workers = 3, .replicas = true}), laptop()), HasSubstr("-n 8 "));
}

TEST(OnThisHost, LocalIsTheProgramAlone) {
  EXPECT_EQ(plan(request({}, Launcher::local), {}), "CAPSTAN_BOOTSTRAP=alone prog 'a b'");
  EXPECT_THAT(refusal(request({.ps = 2}, Launcher::local), {}), HasSubstr("--launcher local is one process"));
}

TEST(OnThisHost, WithoutAnMpirun) {
  EXPECT_THAT(refusal(request(), {.cores = 2}), HasSubstr("there is no mpirun here"));
  EXPECT_THAT(refusal(request(), {.cores = 2, .mpirun_says = "prterun 9"}),
              HasSubstr("\"prterun 9\": expected Open MPI"));
  EXPECT_THAT(refusal(request({}, Launcher::srun), laptop()), HasSubstr("this is no Slurm job"));
  EXPECT_THAT(refusal(request({.told_elsewhere = "CAPSTAN_ROLES"}), laptop()),
              HasSubstr("CAPSTAN_ROLES is set"));
}

TEST(OnSeveralHosts, TheSlotsAreTheRanks) {
  Place place = laptop();
  place.cores = 4;
  place.to_forward = {"CAPSTAN_PS", "UCX_TLS"};
  EXPECT_EQ(plan(with_hosts(), place, kTwoHosts),
            "mpirun -n 8 -H n1:4,n2:4 -x CAPSTAN_PS -x UCX_TLS prog 'a b'");
  EXPECT_EQ(plan(with_hosts({.ps = 3}), place, kTwoHosts),
            "CAPSTAN_PS=3 mpirun -n 8 -H n1:4,n2:4 -x CAPSTAN_PS -x UCX_TLS prog 'a b'");
  EXPECT_EQ(plan(with_hosts({.workers = 5}), place, kTwoHosts),
            "CAPSTAN_PS=2 CAPSTAN_WORKERS=5 mpirun -n 8 -H n1:4,n2:4 -x CAPSTAN_PS -x CAPSTAN_WORKERS -x "
            "UCX_TLS prog 'a b'");
}

TEST(OnSeveralHosts, MoreThanCoresAreNotBound) {
  EXPECT_THAT(plan(with_hosts(), laptop(), kTwoHosts),
              HasSubstr("--map-by slot:OVERSUBSCRIBE --bind-to none"));
}

TEST(OnSeveralHosts, PsMayBeCountedOnEach) {
  EXPECT_THAT(plan(with_hosts({.ps = 1, .workers = 4, .on_each_host = true}), laptop(), kTwoHosts),
              HasSubstr("CAPSTAN_PS=1 CAPSTAN_WORKERS=4 mpirun -n 7 "));
  EXPECT_THAT(refusal(with_hosts({.ps = 4, .on_each_host = true}), laptop(), kTwoHosts),
              HasSubstr("10 ranks are the fewest"));
  EXPECT_THAT(plan(with_hosts({.told_elsewhere = "CAPSTAN_ROLE_FILE"}), laptop(), kTwoHosts),
              HasSubstr("mpirun -n 8 "));
}

TEST(OnSeveralHosts, OfMpich) {
  EXPECT_EQ(plan(with_hosts({.ps = 1, .workers = 2}), laptop(kMpich), kTwoHosts),
            "CAPSTAN_PS=1 CAPSTAN_WORKERS=2 mpirun -n 4 -hosts n1:4,n2:4 prog 'a b'");
}

TEST(OnSeveralHosts, RefusalsSayWhatFits) {
  EXPECT_THAT(refusal(with_hosts({.ps = 3, .workers = 6}), laptop(), kTwoHosts),
              HasSubstr("3 ps and 6 workers make 10 ranks, and --hosts hosts.txt has 8 slots"));
  EXPECT_THAT(refusal(with_hosts({.ps = 7}), laptop(), kTwoHosts), HasSubstr("9 ranks are the fewest"));
  EXPECT_THAT(refusal(with_hosts(), laptop(), {{"n1", 1}}),
              HasSubstr("has 1 slot, and 3 ranks are the fewest here"));
  EXPECT_THAT(refusal(with_hosts(), slurm(), kTwoHosts),
              HasSubstr("this is Slurm job 7, which has its own hosts"));
}

TEST(InSlurm, MpirunIsFirst) {
  EXPECT_EQ(plan(request({.ps = 2}), slurm()), "CAPSTAN_PS=2 mpirun -n 8 -x CAPSTAN_PS prog 'a b'");
  EXPECT_EQ(plan(request(), slurm()), "mpirun -n 8 prog 'a b'");
}

TEST(InSlurm, SrunWhereItIsAskedForOrAlone) {
  const std::string words =
      "srun --mpi=pmix --kill-on-bad-exit=0 --no-kill --export=ALL --ntasks=8 prog 'a b'";
  EXPECT_EQ(plan(request({}, Launcher::srun), slurm()), words);
  Place place = slurm();
  place.mpi.reset();
  EXPECT_EQ(plan(request(), place), words);
  place.allocation->cpus_per_task = 4;
  EXPECT_THAT(plan(request(), place), HasSubstr("--ntasks=8 --cpus-per-task=4 prog"));
  place.mpi = kMpich;
  EXPECT_THAT(plan(request({}, Launcher::srun), place), HasSubstr("srun --mpi=pmi2 "));
  place.mpi = kOpenMpi;
  place.pmi = {"none", "pmi2"};
  EXPECT_THAT(refusal(request({}, Launcher::srun), place), HasSubstr("offers none, pmi2, and no pmix"));
}

TEST(InSlurm, AHeterogeneousJobIsOneWorld) {
  Place place = slurm(6, 2);
  place.allocation->components = 2;
  EXPECT_EQ(plan(request({.ps = 2}), place),
            "CAPSTAN_PS=2 srun --mpi=pmix --kill-on-bad-exit=0 --no-kill --export=ALL "
            "--het-group=0-1 "
            "prog 'a b'");
  EXPECT_THAT(refusal(request({.ps = 1, .workers = 2}), place),
              HasSubstr("has 6 tasks, and all of them are ranks"));
  EXPECT_THAT(refusal(request({}, Launcher::mpirun), place), HasSubstr("no mpirun spans"));
}

TEST(InSlurm, RefusalsSayWhatToAskFor) {
  EXPECT_THAT(
      refusal(request(), slurm(1, 1)),
      HasSubstr("Slurm job 7 has 1 slot, and 3 ranks are the fewest here: ask sbatch or salloc for more "
                "--ntasks, or run all roles in one process with --launcher local"));
  EXPECT_THAT(refusal(request({.workers = 9}), slurm()), HasSubstr("make 12 ranks"));
}

TEST(APlan, IsQuotedForTheShell) {
  Plan plan{{"a", "", "it's", "$HOME", "x=1", "-f"}};
  EXPECT_EQ(plan.text(), "a '' 'it'\\''s' '$HOME' x=1 -f");
}

}  // namespace
}  // namespace capstan::launch::run
