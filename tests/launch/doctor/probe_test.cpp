// probe_test.cpp -- inputs of the checks: UCX log, sysfs, directories, child processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include "capstan/error.hpp"
#include "launch/doctor/adapters.hpp"
#include "launch/doctor/checkpoint_directory.hpp"
#include "launch/doctor/supervised_child.hpp"
#include "launch/doctor/time_limit.hpp"
#include "launch/doctor/ucx_probe.hpp"

namespace capstan::launch::doctor {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// Output of UCX 1.13.1.
constexpr const char* kLog =
    "[1795371013.661169] [vm:27906:0]     ucp_context.c:1014 UCX  WARN  network device 'foo' is not "
    "available, please "
    "use one or more of: 'eth0'(tcp), 'lo'(tcp)\n"
    "[1795371034.049074] [vm:27950:0]          parser.c:1908 UCX  WARN  unused env variables: "
    "CAPSTAN_UCX_FOO,UCX_NET_DEVICE (set UCX_WARN_UNUSED_ENV_VARS=n to suppress this warning)\n";
constexpr const char* kFound =
    R"({"version":"1.13.1","transports":"all","devices":"foo,lo","network":["tcp/lo"],"in_memory":["sysv/memory"],)"
    R"("other":[],"known":["UCX_TLS","UCX_NET_DEVICES"]})";

TEST(UcxProbe, ParsesLogAndJson) {
  const UcxProbe probe = parse_ucx_probe(std::string(kLog) + kLog + kFound + "\n");
  EXPECT_EQ(probe.failure, "");
  EXPECT_EQ(probe.offer.version, "1.13.1");
  EXPECT_THAT(probe.offer.network, ElementsAre("tcp/lo"));
  EXPECT_THAT(probe.unused, ElementsAre("CAPSTAN_UCX_FOO", "UCX_NET_DEVICE"));
  EXPECT_THAT(probe.complaints, ElementsAre(HasSubstr("network device 'foo' is not available")));
}

TEST(UcxProbe, SuggestsTheNearestVariable) {
  const Finding finding = judge_ucx_variables(parse_ucx_probe(std::string(kLog) + kFound));
  EXPECT_EQ(finding.verdict, Verdict::warn);
  EXPECT_THAT(finding.observed,
              AllOf(HasSubstr("CAPSTAN_UCX_FOO is not used"), HasSubstr("UCX_NET_DEVICE is not used")));
  EXPECT_THAT(finding.fix, HasSubstr("UCX_NET_DEVICE: did you mean UCX_NET_DEVICES?"));
  EXPECT_EQ(judge_ucx_variables(parse_ucx_probe(kFound)).verdict, Verdict::pass);
}

TEST(UcxProbe, MissingDeviceWarnsAndNoNetworkFails) {
  UcxProbe probe = parse_ucx_probe(std::string(kLog) + kFound);
  probe.offer.network = {"tcp/lo", "tcp/eth0"};
  EXPECT_EQ(judge_ucx_devices(probe).verdict, Verdict::warn);
  EXPECT_THAT(judge_ucx_devices(probe).observed, HasSubstr("'foo' is not available"));
  probe.complaints.clear();
  EXPECT_EQ(judge_ucx_devices(probe).verdict, Verdict::pass);
  probe.offer.network = {"tcp/lo"};
  EXPECT_EQ(judge_ucx_devices(probe).verdict, Verdict::warn);
  EXPECT_THAT(judge_ucx_devices(probe).observed, HasSubstr("tcp/lo"));
  probe.offer.network.clear();
  EXPECT_EQ(judge_ucx_devices(probe).verdict, Verdict::fail);
}

TEST(UcxProbe, MalformedValueFails) {
  const UcxProbe probe = parse_ucx_probe(
      "[1.0] [vm:1:0]  parser.c:1059 UCX  ERROR Invalid value for RNDV_THRESH: 'abc'. Expected: memory "
      "units\n"
      R"({"failure":"ucp_config_read: Invalid parameter"})");
  EXPECT_EQ(judge_ucx_variables(probe).verdict, Verdict::fail);
  EXPECT_THAT(judge_ucx_variables(probe).observed, HasSubstr("Invalid value for RNDV_THRESH"));
  EXPECT_EQ(judge_ucx_devices(probe).verdict, Verdict::fail);
}

TEST(UcxProbe, MissingOutputFails) {
  EXPECT_EQ(judge_ucx_devices(parse_ucx_probe("")).verdict, Verdict::fail);
  EXPECT_EQ(judge_ucx_devices(parse_ucx_probe("Segmentation fault\n[3]\nnull\n")).verdict, Verdict::fail);
}

class InTemporaryDirectory : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::temp_directory_path() / ("capstan-doctor-test-" + std::to_string(::getpid()));
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((directory_ / name).parent_path());
    std::ofstream(directory_ / name) << text << "\n";
  }
  fs::path directory_;
};

using Adapters = InTemporaryDirectory;

TEST_F(Adapters, ReadsSysfs) {
  EXPECT_TRUE(read_adapters(directory_).empty());
  EXPECT_EQ(judge_adapters({}).verdict, Verdict::skip);
  const std::string port = "class/infiniband/mlx5_0/ports/1/";
  write(port + "state", "4: ACTIVE");
  write(port + "rate", "200 Gb/sec (4X HDR)");
  write(port + "link_layer", "InfiniBand");
  write("class/infiniband/mlx5_1/ports/1/state", "1: DOWN");
  write("class/net/eth0/speed", "25000");
  write("class/net/veth/speed", "-1");
  const auto ports = read_adapters(directory_);
  ASSERT_EQ(ports.size(), 2u);
  EXPECT_EQ(ports[0].name, "mlx5_0:1");
  EXPECT_TRUE(ports[0].active());
  EXPECT_FALSE(ports[1].active());
  EXPECT_EQ(judge_adapters(ports).verdict, Verdict::pass);
  EXPECT_EQ(judge_adapters({ports[1]}).verdict, Verdict::fail);
  EXPECT_EQ(link_rate(directory_, "mlx5_0:1"), 200.0);
  EXPECT_EQ(link_rate(directory_, "mlx5_1:1"), std::nullopt);
  EXPECT_EQ(link_rate(directory_, "eth0"), 25.0);
  EXPECT_EQ(link_rate(directory_, "veth"), std::nullopt);
  EXPECT_EQ(link_rate(directory_, "absent"), std::nullopt);
}

using Directory = InTemporaryDirectory;

TEST_F(Directory, ProbeLeavesNoFiles) {
  const DirectoryProbe probe = probe_directory(directory_.string());
  EXPECT_EQ(probe.probed, directory_.string());
  EXPECT_EQ(probe.cannot_write, "");
  EXPECT_EQ(probe.cannot_lock, "");
  EXPECT_GT(probe.bytes_per_second, 0);
  EXPECT_GT(probe.free_bytes, 0u);
  EXPECT_TRUE(fs::is_empty(directory_));
  EXPECT_EQ(probe_directory((directory_ / "a/b").string()).probed, directory_.string());
  EXPECT_NE(probe_directory("/proc/absent").cannot_write, "");
}

TEST_F(Directory, MarkerFileIsRemovedByDestructor) {
  std::string path;
  {
    const MarkerFile mark((directory_ / "not/yet").string());
    path = mark.path();
    EXPECT_TRUE(MarkerFile::is_visible(path));
    EXPECT_EQ(fs::path(path).parent_path(), directory_);
  }
  EXPECT_TRUE(fs::is_empty(directory_));
  EXPECT_THROW(MarkerFile("/proc"), Error);
}

/// Runs `holds` in a forked process, without threads of other tests.
bool in_a_fork(const std::function<bool()>& holds) {
  const pid_t child = fork();
  if (child == 0) _exit(holds() ? 0 : 1);
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool is_stopped(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string line(std::istreambuf_iterator<char>(file), {});
  return line.find(") T ") != std::string::npos;
}

std::span<const std::byte> bytes_of(const char* text) {
  return std::as_bytes(std::span(text, std::strlen(text)));
}

TEST(SupervisedChild, ReturnsReportsOfADeadChild) {
  EXPECT_TRUE(in_a_fork([] {
    const ChildResult result = run_in_child([](const SendReport& send_report) {
      send_report(bytes_of("findings"));
      send_report({});
      _exit(3);
    });
    return result.exit_code == 3 && !result.terminated && result.reports.size() == 2 &&
           result.reports[0].size() == 8;
  }));
  EXPECT_TRUE(in_a_fork([] {
    const ChildResult result = run_in_child([](const SendReport& send_report) {
      send_report(bytes_of("findings"));
      raise(SIGKILL);
    });
    return result.exit_code == 137 && !result.terminated && result.reports.size() == 1;
  }));
  EXPECT_TRUE(in_a_fork([] {
    return run_in_child([](const SendReport&) {
             throw std::runtime_error("thrown by the test");
           }).exit_code == 1;
  }));
}

TEST(SupervisedChild, KillsTheChildOnSigterm) {
  EXPECT_TRUE(in_a_fork([] {
    const ChildResult result = run_in_child([](const SendReport& send_report) {
      send_report({});
      kill(getppid(), SIGTERM);
      for (;;) pause();
    });
    return result.exit_code == 137 && result.terminated && result.reports.size() == 1;
  }));
}

TEST(SupervisedChild, DetectsSigtermThatPrecedesTheChildsExit) {
  EXPECT_TRUE(in_a_fork([] {
    const ChildResult result = run_in_child([](const SendReport& send_report) {
      send_report({});
      const pid_t parent = getppid();
      const pid_t child = getpid();
      kill(parent, SIGSTOP);                     // so that it finds both events at once
      while (!is_stopped(parent)) usleep(1000);  // between two polls
      kill(parent, SIGTERM);
      if (fork() != 0) _exit(4);
      close_range(3, ~0U, 0);                   // closes the pipe to the parent
      while (getppid() == child) usleep(1000);  // between two polls
      kill(parent, SIGCONT);
      _exit(0);
    });
    return result.exit_code == 4 && result.terminated && result.reports.size() == 1;
  }));
}

TEST(TimeLimit, ReturnsResultTimeoutOrException) {
  EXPECT_EQ(run_with_time_limit<int>(std::chrono::hours(1), [] { return 7; }), 7);
  const auto release = std::make_shared<std::promise<void>>();  // the thread outlives the test
  EXPECT_EQ(run_with_time_limit<int>(std::chrono::milliseconds(50),
                                     [release] {
                                       release->get_future().wait();
                                       return 7;
                                     }),
            std::nullopt);
  release->set_value();
  EXPECT_THROW(
      run_with_time_limit<int>(std::chrono::hours(1), []() -> int { throw std::runtime_error("x"); }),
      std::runtime_error);
}

}  // namespace
}  // namespace capstan::launch::doctor
