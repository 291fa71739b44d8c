// supervised_program_test.cpp -- whether a program needs capstan-agent, where it is found, and what it is
// told.
#include "cluster/supervisor/supervised_program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "capstan/detail/supervised_program.hpp"
#include "capstan/error.hpp"
#include "support/expect_error.hpp"
#include "support/in_a_process.hpp"

namespace capstan {
namespace {

namespace fs = std::filesystem;
using detail::exec_under_agent;
using detail::needs_agent;

const std::vector<std::string> kCommand{"program", "--verbose", "--capstan-max-restarts=2", "file"};

/// A directory for each test, and an environment without a launcher.
class SupervisedProgram : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name :
         {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "PMIX_RANK", "TF_CONFIG",
          "SLURM_STEP_NUM_TASKS", "CAPSTAN_AGENT", detail::kAgentLinkVariable}) {
      unsetenv(name);
    }
    std::string pattern = testing::TempDir() + "supervised-program-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { fs::remove_all(directory_); }

  /// Creates a shell script.
  fs::path script(const fs::path& name, const std::string& text) const {
    const fs::path path = directory_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "#!/bin/sh\n" << text << "\n";
    fs::permissions(path, fs::perms::owner_all);
    return path;
  }

  std::string content_of(const fs::path& name) const {
    std::ostringstream text;
    text << std::ifstream(directory_ / name).rdbuf();
    return text.str();
  }

  fs::path directory_;
};

/// Runs it in a child process that a launcher has started as one of two ranks.
bool in_a_rank(const std::function<bool()>& holds) {
  return in_a_process([&] {
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    setenv("OMPI_COMM_WORLD_RANK", "1", 1);
    return holds() && !testing::Test::HasFailure();
  });
}

TEST_F(SupervisedProgram, NeedsAnAgentAsARankOfAJobOnly) {
  EXPECT_FALSE(needs_agent({}, kCommand));
  EXPECT_TRUE(in_a_rank([] { return needs_agent({}, kCommand); }));
  EXPECT_TRUE(in_a_rank([] { return !needs_agent({.bootstrap = "alone"}, kCommand); }));
  EXPECT_TRUE(in_a_rank([] { return !needs_agent({.join = "/run/job"}, kCommand); })) << "a late worker";
}

TEST_F(SupervisedProgram, NeedsNoAgentIfASettingForbidsIt) {
  EXPECT_TRUE(in_a_rank([] { return !needs_agent({.supervise = "off"}, kCommand); }));
  EXPECT_TRUE(in_a_rank([] { return !needs_agent({}, {"program", "--capstan-supervise=off"}); }));
  EXPECT_TRUE(in_a_rank([] {
    return needs_agent({.supervise = "off"}, {"program", "--capstan-supervise=on"});
  }));
  EXPECT_TRUE(in_a_rank([] {
    setenv("CAPSTAN_SUPERVISE", "off", 1);
    return !needs_agent({}, kCommand);
  }));
}

TEST_F(SupervisedProgram, NeedsNoSecondAgent) {
  EXPECT_FALSE(detail::is_supervised());
  EXPECT_TRUE(in_a_rank([] {
    setenv(detail::kAgentLinkVariable, "0.1.0:1", 1);
    return detail::is_supervised() && !needs_agent({}, kCommand);
  }));
}

TEST_F(SupervisedProgram, RejectsMalformedArguments) {
  expect_error_naming(Code::invalid_argument, {"max-restarts", "many"}, [] {
    (void)needs_agent({}, {"program", "--capstan-max-restarts=many"});
  });
}

TEST_F(SupervisedProgram, IsReplacedByTheAgentWithItsPidSettingsAndArguments) {
  const fs::path agent = script("agent", "cd \"$(dirname \"$0\")\"; printf '%s\\n' $$ \"$@\" > arguments");
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    setenv("CAPSTAN_AGENT", agent.c_str(), 1);
    setenv("CAPSTAN_WORKERS", "6", 1);
    try {
      exec_under_agent({.ps = 3, .workers = 4, .max_restarts = 7}, kCommand);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "exec_under_agent: %s\n", error.what());
      _exit(99);
    }
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  // The agent reads CAPSTAN_WORKERS and --capstan-max-restarts itself.
  EXPECT_EQ(content_of("arguments"),
            std::to_string(child) + "\n--ps=3\n--\nprogram\n--verbose\n--capstan-max-restarts=2\nfile\n");
}

TEST_F(SupervisedProgram, IsNotReplacedWithoutNeed) {
  expect_error_naming(Code::failed_precondition, {"needs_agent"}, [] { exec_under_agent({}, kCommand); });
  expect_error_naming(Code::invalid_argument, {"command"}, [] { exec_under_agent({}, {}); });
}

TEST_F(SupervisedProgram, FindsTheAgentBesideTheLibraryOrInBin) {
  const fs::path library = directory_ / "lib/libcapstan.so";
  const fs::path in_bin = script("bin/capstan-agent", "exit 0");
  fs::create_directories(library.parent_path());
  EXPECT_EQ(cluster::find_agent(library), in_bin);
  const fs::path beside = script("lib/capstan-agent", "exit 0");
  EXPECT_EQ(cluster::find_agent(library), beside);
}

TEST_F(SupervisedProgram, FindsTheAgentThatTheVariableNames) {
  const fs::path beside = script("capstan-agent", "exit 0");
  const fs::path named = script("other/agent", "exit 0");
  EXPECT_TRUE(in_a_process([&] {
    setenv("CAPSTAN_AGENT", named.c_str(), 1);
    return cluster::find_agent(directory_ / "libcapstan.so") == named;
  }));
}

TEST_F(SupervisedProgram, ReportsWhereItSearchedForTheAgent) {
  expect_error_naming(Code::not_found, {(directory_ / "lib/capstan-agent").string(), "CAPSTAN_AGENT"},
                      [&] { (void)cluster::find_agent(directory_ / "lib/libcapstan.so"); });
  const auto error_with_variable = [&](Code code, const fs::path& path) {
    return in_a_process([&] {
      setenv("CAPSTAN_AGENT", path.c_str(), 1);
      expect_error_naming(code, {"CAPSTAN_AGENT", path.string()},
                          [&] { (void)cluster::find_agent(directory_ / "libcapstan.so"); });
      return !testing::Test::HasFailure();
    });
  };
  EXPECT_TRUE(error_with_variable(Code::not_found, "/nowhere/agent"));
  EXPECT_TRUE(error_with_variable(Code::permission_denied, CAPSTAN_SOURCE_DIR "/README.md"));
}

/// Exit code of a process that runs the command under an agent, if it needs one.
int code_of_command(const std::vector<std::string>& command) {
  const pid_t child = fork();
  if (child == 0) cluster::run_under_agent(Settings(), command);
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(SupervisedProgram, RunsInTheProcessItselfWithoutALauncher) {
  const fs::path program = script("program", "echo $$ \"$@\" > \"$(dirname \"$0\")/run\"; exit 7");
  EXPECT_EQ(code_of_command({program, "one", "two words"}), 7);
  EXPECT_THAT(content_of("run"), testing::EndsWith(" one two words\n"));
}

TEST_F(SupervisedProgram, ExitsAsAShellDoesIfItCannotBeExecuted) {
  EXPECT_EQ(code_of_command({directory_ / "missing"}), 127);
  EXPECT_EQ(code_of_command({CAPSTAN_SOURCE_DIR "/README.md"}), 126);
}

}  // namespace
}  // namespace capstan
