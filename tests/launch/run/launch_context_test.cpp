// launch_context_test.cpp -- parsing of Slurm variables and of `mpirun --version`.
#include "launch/run/launch_context.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/error.hpp"
#include "support/names_all.hpp"

namespace capstan::launch::run {
namespace {

using testing::HasSubstr;

TEST(Mpirun, IsRecognizedByItsVersion) {
  const auto kind = [](std::string_view text) { return mpi_of(text).value().kind; };
  EXPECT_EQ(kind("mpirun (Open MPI) 4.1.4\n\nReport bugs to ...\n"), MpiKind::open_mpi);
  EXPECT_EQ(kind("mpirun.real (OpenRTE) 4.1.4\n"), MpiKind::open_mpi);
  EXPECT_EQ(kind("HYDRA build details:\n    Version:                                 4.0.2\n"),
            MpiKind::mpich);
  EXPECT_EQ(kind("Intel(R) MPI Library for Linux* OS, Version 2021.9 Build 2023\n"), MpiKind::mpich);
  EXPECT_FALSE(mpi_of("mpirun: command of another kind"));
  EXPECT_EQ(mpi_of("mpirun (Open MPI) 5.0.3\n")->version, "5.0.3");
  EXPECT_EQ(mpi_of("HYDRA build details:\n    Version:      4.0.2\n")->version, "4.0.2");
}

TEST(SlurmJob, IsEmptyOutsideOfSlurm) { EXPECT_FALSE(allocation_of({{"SLURM_NTASKS", "4"}})); }

TEST(SlurmJob, ParsesTasksAndHosts) {
  const auto job = allocation_of({{"SLURM_JOB_ID", "7"},
                                  {"SLURM_NTASKS", "8"},
                                  {"SLURM_TASKS_PER_NODE", "3(x2),2"},
                                  {"SLURM_CPUS_PER_TASK", "4"}});
  ASSERT_TRUE(job);
  EXPECT_EQ(job->job_id, "7");
  EXPECT_EQ(job->tasks, 8);
  EXPECT_EQ(job->hosts, 3);
  EXPECT_EQ(job->components, 1);
  EXPECT_EQ(job->max_tasks_per_host, 3);
  EXPECT_EQ(job->cpus_per_task, 4);
}

TEST(SlurmJob, CountsTasksPerNodeWithoutNtasks) {
  EXPECT_EQ(allocation_of({{"SLURM_JOB_ID", "7"}, {"SLURM_TASKS_PER_NODE", "4(x2)"}})->tasks, 8);
}

TEST(SlurmJob, AddsComponentsOfHeterogeneousJobs) {
  const auto job = allocation_of({{"SLURM_JOB_ID", "7"},
                                  {"SLURM_HET_SIZE", "2"},
                                  {"SLURM_NTASKS_HET_GROUP_0", "2"},
                                  {"SLURM_TASKS_PER_NODE_HET_GROUP_0", "2"},
                                  {"SLURM_TASKS_PER_NODE_HET_GROUP_1", "3(x2)"}});
  ASSERT_TRUE(job);
  EXPECT_EQ(job->tasks, 8);
  EXPECT_EQ(job->hosts, 3);
  EXPECT_EQ(job->components, 2);
}

TEST(SlurmJob, ErrorsNameTheVariable) {
  const auto refusal = [](const Environment& environment) -> std::string {
    try {
      allocation_of(environment);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal({{"SLURM_JOB_ID", "7"}}),
              NamesAll({"7", "SLURM_NTASKS", "SLURM_TASKS_PER_NODE", "--ntasks=N"}));
  EXPECT_THAT(refusal({{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "many"}}), HasSubstr("SLURM_NTASKS=\"many\""));
  EXPECT_THAT(refusal({{"SLURM_JOB_ID", "7"}, {"SLURM_TASKS_PER_NODE", "2(x"}}),
              HasSubstr("SLURM_TASKS_PER_NODE"));
}

}  // namespace
}  // namespace capstan::launch::run
