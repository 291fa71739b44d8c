// judge_test.cpp -- verdicts on made-up versions, limits, launchers, time left, GPUs and directories.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "launch/doctor/checkpoint_directory.hpp"
#include "launch/doctor/gpu.hpp"
#include "launch/doctor/host_names.hpp"
#include "launch/doctor/launchers.hpp"
#include "launch/doctor/limits.hpp"
#include "launch/doctor/time_left.hpp"
#include "launch/doctor/versions.hpp"

namespace capstan::launch::doctor {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kGiB = 1 << 30;

#define EXPECT_VERDICT(expected, finding)                                      \
  do {                                                                         \
    const Finding found = (finding);                                           \
    EXPECT_EQ(found.verdict, Verdict::expected) << found.observed;             \
    EXPECT_EQ(found.fix.empty(), found.verdict <= Verdict::skip) << found.fix; \
    EXPECT_FALSE(found.observed.empty());                                      \
  } while (false)

TEST(Versions, ComparesCommonComponents) {
  EXPECT_VERDICT(pass, judge_versions("1.13", "1.13.1"));
  EXPECT_VERDICT(pass, judge_versions("1.10.8", "1.10.8"));
  EXPECT_VERDICT(warn, judge_versions("1.10.8", "1.10.7"));
  EXPECT_VERDICT(warn, judge_versions("1.13", "1.9.0"));
  EXPECT_VERDICT(fail, judge_versions("1.13", "2.13.1"));
  EXPECT_VERDICT(fail, judge_versions("1.13", ""));
}

TEST(Versions, FailsForAnotherMpiImplementation) {
  constexpr const char* kOpenMpi = "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4";
  constexpr const char* kMpich = "MPICH Version:\t4.0.2\nMPICH Release date:\tThu Apr  7 12:34:45 CDT 2022\n";
  EXPECT_VERDICT(pass, judge_mpi("Open MPI 4.1.4", kOpenMpi));
  EXPECT_VERDICT(pass, judge_mpi("MPICH 4.0.2", kMpich));
  EXPECT_VERDICT(warn, judge_mpi("Open MPI 4.0.5", kOpenMpi));
  EXPECT_VERDICT(fail, judge_mpi("Open MPI 5.0.1", kOpenMpi));
  EXPECT_VERDICT(fail, judge_mpi("MPICH 4.1.4", kOpenMpi));
  EXPECT_VERDICT(fail, judge_mpi("Open MPI 4.0.2", kMpich));
}

TEST(Memlock, AdapterNeedsUnlimited) {
  EXPECT_VERDICT(pass, judge_memlock(kUnlimited, true));
  EXPECT_VERDICT(fail, judge_memlock(8 * kMiB, true));
  EXPECT_VERDICT(pass, judge_memlock(8 * kMiB, false));
  EXPECT_VERDICT(warn, judge_memlock(64 * 1024, false));
}

TEST(OpenFiles, JudgesTheHardLimit) {
  EXPECT_VERDICT(pass, judge_open_files(1024, kUnlimited, 4));
  EXPECT_VERDICT(pass, judge_open_files(64, 4096, 1000));
  EXPECT_VERDICT(warn, judge_open_files(1024, 1024, 900));
  EXPECT_VERDICT(fail, judge_open_files(1024, 1024, 1000));
  EXPECT_VERDICT(fail, judge_open_files(50, 50, 1));
}

TEST(SharedMemory, WarnsForContainerDefault) {
  EXPECT_VERDICT(fail, judge_shared_memory(std::nullopt));
  EXPECT_VERDICT(fail, judge_shared_memory(Space{kGiB, kMiB}));
  EXPECT_VERDICT(warn, judge_shared_memory(Space{64 * kMiB, 64 * kMiB}));
  EXPECT_VERDICT(pass, judge_shared_memory(Space{8 * kGiB, 7 * kGiB}));
}

TEST(Sysv, JudgesSizeAndNumberOfSegments) {
  // Defaults of Linux.
  EXPECT_VERDICT(pass, judge_sysv({18446744073692774399u, 18446744073692774399u, 4096, 3}));
  EXPECT_THAT(judge_sysv({18446744073692774399u, 18446744073692774399u, 4096, 3}).observed,
              HasSubstr("unlimited per segment (shmmax), unlimited in total (shmall), 3 of 4096"));
  EXPECT_VERDICT(fail, judge_sysv({32 * kMiB, kUnlimited, 4096, 0}));
  EXPECT_VERDICT(warn, judge_sysv({512 * kMiB, kUnlimited, 4096, 0}));
  EXPECT_VERDICT(fail, judge_sysv({kUnlimited, 1024, 4096, 0}));  // 4 MiB in total
  EXPECT_VERDICT(fail, judge_sysv({kUnlimited, kUnlimited, 4096, 4096}));
  EXPECT_VERDICT(warn, judge_sysv({kUnlimited, kUnlimited, 4096, 4000}));
}

TEST(HugePages, WarnsIfDisabledForSharedMemory) {
  EXPECT_VERDICT(
      warn, judge_huge_pages("always [madvise] never", "always within_size advise [never] deny force", 0));
  EXPECT_VERDICT(
      pass, judge_huge_pages("always [madvise] never", "always within_size [advise] never deny force", 0));
  EXPECT_VERDICT(warn, judge_huge_pages("", "", 0));
}

TEST(Ptrace, WarnsIfScopeBlocksCma) {
  EXPECT_VERDICT(pass, judge_ptrace(std::nullopt));
  EXPECT_VERDICT(pass, judge_ptrace(0));
  EXPECT_VERDICT(warn, judge_ptrace(1));
}

TEST(Ranks, DetectsSingletonWorlds) {
  EXPECT_VERDICT(skip, judge_ranks(std::nullopt, std::nullopt));
  EXPECT_VERDICT(pass, judge_ranks(LauncherSize{"PMI_SIZE", 4}, 4));
  EXPECT_VERDICT(pass, judge_ranks(LauncherSize{"SLURM_STEP_NUM_TASKS", 1}, std::nullopt));
  EXPECT_VERDICT(fail, judge_ranks(LauncherSize{"OMPI_COMM_WORLD_SIZE", 4}, 1));
  EXPECT_VERDICT(fail, judge_ranks(LauncherSize{"SLURM_STEP_NUM_TASKS", 4}, std::nullopt));
  EXPECT_VERDICT(fail, judge_ranks(LauncherSize{"PMI_SIZE", 4}, 2));
  EXPECT_THAT(judge_ranks(LauncherSize{"PMI_SIZE", 4}, 1).fix, HasSubstr("--mpi=pmix"));
}

TEST(Ranks, DetectsSlurmStepWithoutPmi) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"}) ::unsetenv(name);
  ::setenv("SLURM_STEP_NUM_TASKS", "3", 1);
  ASSERT_TRUE(launcher_size().has_value());
  EXPECT_EQ(launcher_size()->ranks, 3);
  ::setenv("SLURM_STEP_NUM_TASKS", "many", 1);
  EXPECT_FALSE(launcher_size().has_value());
  ::unsetenv("SLURM_STEP_NUM_TASKS");
}

TEST(TimeLeft, WarnsIfLittleIsLeft) {
  const auto judge = [](int left) { return judge_time_left("7", {.known = true, .left = seconds(left)}); };
  EXPECT_VERDICT(pass, judge(7200));
  EXPECT_THAT(judge(7265).observed, HasSubstr("2 h 01 min left (squeue)"));
  EXPECT_VERDICT(warn, judge(60));
  EXPECT_VERDICT(pass, judge_time_left("7", {.known = true}));
  EXPECT_VERDICT(skip, judge_time_left("7", {}));
}

TEST(Gpus, JudgesDriverDevicesAndNccl) {
  EXPECT_VERDICT(skip, judge_gpus({}));
  EXPECT_VERDICT(fail, judge_gpus({.driver = true, .failure = "cuInit: CUDA error 999"}));
  EXPECT_VERDICT(warn, judge_gpus({.driver = true, .cuda = 12040}));
  EXPECT_VERDICT(pass, judge_gpus({.driver = true, .cuda = 12040, .devices = {"A"}}));
  EXPECT_VERDICT(warn, judge_gpus({.driver = true, .cuda = 12040, .devices = {"A", "A"}}));
  const Finding combine = judge_gpus({.driver = true, .cuda = 12040, .nccl = 22005, .devices = {"A", "A"}});
  EXPECT_VERDICT(pass, combine);
  EXPECT_THAT(combine.observed, HasSubstr("(CUDA 12.4), NCCL 2.20.5"));
}

DirectoryProbe good_directory() {
  return {.directory = "/run",
          .probed = "/run",
          .file_system = "lustre",
          .free_bytes = 10 * kGiB,
          .bytes_per_second = 1e9};
}

TEST(CheckpointDirectory, JudgesProbeResults) {
  EXPECT_VERDICT(pass, judge_directory(good_directory()));
  DirectoryProbe probe = good_directory();
  probe.cannot_write = "open: Read-only file system";
  EXPECT_VERDICT(fail, judge_directory(probe));
  probe = good_directory();
  probe.probed = "/";
  EXPECT_VERDICT(warn, judge_directory(probe));
  probe = good_directory();
  probe.file_system = "tmpfs";
  EXPECT_VERDICT(warn, judge_directory(probe));
  probe = good_directory();
  probe.cannot_lock = "No locks available";
  EXPECT_VERDICT(warn, judge_directory(probe));
  EXPECT_THAT(judge_directory(probe).fix, HasSubstr("HDF5_USE_FILE_LOCKING"));
  probe = good_directory();
  probe.free_bytes = 5 * kMiB;
  EXPECT_VERDICT(warn, judge_directory(probe));
  probe = good_directory();
  probe.bytes_per_second = 1e6;
  EXPECT_VERDICT(warn, judge_directory(probe));
}

TEST(CheckpointDirectory, FailsIfAHostDoesNotSeeIt) {
  EXPECT_VERDICT(skip, judge_shared_directory("", 2, {}, ""));
  EXPECT_VERDICT(skip, judge_shared_directory("/run", 1, {}, ""));
  EXPECT_VERDICT(skip, judge_shared_directory("/run", 2, {}, "open: Permission denied"));
  EXPECT_VERDICT(pass, judge_shared_directory("/run", 2, {}, ""));
  EXPECT_VERDICT(fail, judge_shared_directory("/run", 3, {"n2"}, ""));
}

TEST(CheckpointDirectory, NamesFileSystems) {
  EXPECT_EQ(file_system_name(0x6969), "nfs");
  EXPECT_EQ(file_system_name(0x0BD00BD0), "lustre");
  EXPECT_EQ(file_system_name(0x1234), "0x1234");
}

TEST(HostName, WarnsWithoutAddress) {
  EXPECT_VERDICT(warn, judge_host_name("n1", {}));
  EXPECT_VERDICT(pass, judge_host_name("n1", {"10.0.0.1"}));
  EXPECT_THAT(judge_host_name("n1", {"127.0.1.1"}).observed, HasSubstr("no other host"));
}

TEST(Ports, FailsForUnreachableHost) {
  EXPECT_VERDICT(skip, judge_connections({}));
  EXPECT_VERDICT(pass, judge_connections({{"n1", "n2"}, {"n2", "n1"}}));
  // The first interface may be a container bridge, which no other host can reach.
  EXPECT_VERDICT(pass, judge_connections({{"n1", "n2", "", "172.17.0.1, port 5: no answer"}}));
  const Finding unnamed = judge_connections({{"n1", "n2"}, {"n2", "n1", "the name n1 is unknown"}});
  EXPECT_VERDICT(warn, unnamed);
  EXPECT_THAT(unnamed.observed,
              HasSubstr("1 of 2 connections between hosts failed: n2 -> n1: the name n1 is unknown"));
  EXPECT_VERDICT(fail,
                 judge_connections({{"n1", "n2", "the name n2 is unknown"},
                                    {"n2", "n1", "no answer from 10.0.0.1", "no answer from 10.0.0.1"}}));
}

TEST(Ports, ConnectsToListenerButNotToClosedPort) {
  int closed = 0;
  {
    const Listener listener;
    const ConnectionAttempt good = attempt_connection("here", {"localhost", "127.0.0.1", listener.port()});
    EXPECT_EQ(good.name_error + good.address_error, "");
    const ConnectionAttempt unnamed =
        attempt_connection("here", {"no-such-host.invalid", "127.0.0.1", listener.port()});
    EXPECT_EQ(unnamed.address_error, "");
    EXPECT_NE(unnamed.name_error, "");
    closed = listener.port();
  }
  const ConnectionAttempt refused = attempt_connection("here", {"localhost", "127.0.0.1", closed});
  EXPECT_THAT(refused.name_error, HasSubstr("refused"));
  EXPECT_THAT(refused.address_error, HasSubstr("refused"));
}

}  // namespace
}  // namespace capstan::launch::doctor
