// look_test.cpp -- what is read before it is judged: UCX's log, sysfs, other programs.
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
#include "launch/doctor/checkpoint_folder.hpp"
#include "launch/doctor/keeper.hpp"
#include "launch/doctor/time_limit.hpp"
#include "launch/doctor/ucx_look.hpp"

namespace capstan::launch::doctor {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// As UCX 1.13.1 has written it.
constexpr const char* kLog =
    "[1795371013.661169] [vm:27906:0]     ucp_context.c:1014 UCX  WARN  network device 'foo' is not "
    "available, please "
    "use one or more of: 'eth0'(tcp), 'lo'(tcp)\n"
    "[1795371034.049074] [vm:27950:0]          parser.c:1908 UCX  WARN  unused env variables: "
    "CAPSTAN_UCX_FOO,UCX_NET_DEVICE (set UCX_WARN_UNUSED_ENV_VARS=n to suppress this warning)\n";
constexpr const char* kFound =
    R"({"version":"1.13.1","transports":"all","devices":"foo,lo","network":["tcp/lo"],"in_memory":["sysv/memory"],)"
    R"("other":[],"known":["UCX_TLS","UCX_NET_DEVICES"]})";

TEST(UcxLook, ReadsLogAndAnswer) {
  const UcxLook look = read_ucx_look(std::string(kLog) + kLog + kFound + "\n");
  EXPECT_EQ(look.failure, "");
  EXPECT_EQ(look.offer.version, "1.13.1");
  EXPECT_THAT(look.offer.network, ElementsAre("tcp/lo"));
  EXPECT_THAT(look.unused, ElementsAre("CAPSTAN_UCX_FOO", "UCX_NET_DEVICE"));
  EXPECT_THAT(look.complaints, ElementsAre(HasSubstr("network device 'foo' is not available")));
}

TEST(UcxLook, ANameThatIsNearlyRightGetsASuggestion) {
  const Finding finding = judge_ucx_variables(read_ucx_look(std::string(kLog) + kFound));
  EXPECT_EQ(finding.verdict, Verdict::warn);
  EXPECT_THAT(finding.seen,
              AllOf(HasSubstr("CAPSTAN_UCX_FOO is not used"), HasSubstr("UCX_NET_DEVICE is not used")));
  EXPECT_THAT(finding.mend, HasSubstr("UCX_NET_DEVICE: did you mean UCX_NET_DEVICES?"));
  EXPECT_EQ(judge_ucx_variables(read_ucx_look(kFound)).verdict, Verdict::pass);
}

TEST(UcxLook, ADeviceThatIsNotThereWarnsAndNoNetworkFails) {
  UcxLook look = read_ucx_look(std::string(kLog) + kFound);
  look.offer.network = {"tcp/lo", "tcp/eth0"};
  EXPECT_EQ(judge_ucx_devices(look).verdict, Verdict::warn);
  EXPECT_THAT(judge_ucx_devices(look).seen, HasSubstr("'foo' is not available"));
  look.complaints.clear();
  EXPECT_EQ(judge_ucx_devices(look).verdict, Verdict::pass);
  look.offer.network = {"tcp/lo"};
  EXPECT_EQ(judge_ucx_devices(look).verdict, Verdict::warn);
  EXPECT_THAT(judge_ucx_devices(look).seen, HasSubstr("tcp/lo"));
  look.offer.network.clear();
  EXPECT_EQ(judge_ucx_devices(look).verdict, Verdict::fail);
}

TEST(UcxLook, AValueThatUcxCannotReadFails) {
  const UcxLook look = read_ucx_look(
      "[1.0] [vm:1:0]  parser.c:1059 UCX  ERROR Invalid value for RNDV_THRESH: 'abc'. Expected: memory "
      "units\n"
      R"({"failure":"ucp_config_read: Invalid parameter"})");
  EXPECT_EQ(judge_ucx_variables(look).verdict, Verdict::fail);
  EXPECT_THAT(judge_ucx_variables(look).seen, HasSubstr("Invalid value for RNDV_THRESH"));
  EXPECT_EQ(judge_ucx_devices(look).verdict, Verdict::fail);
}

TEST(UcxLook, AChildThatSaysNothingFails) {
  EXPECT_EQ(judge_ucx_devices(read_ucx_look("")).verdict, Verdict::fail);
  EXPECT_EQ(judge_ucx_devices(read_ucx_look("Segmentation fault\n[3]\nnull\n")).verdict, Verdict::fail);
}

class InAFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("capstan-doctor-test-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text << "\n";
  }
  fs::path folder_;
};

using Adapters = InAFolder;

TEST_F(Adapters, AreReadFromSysfs) {
  EXPECT_TRUE(read_adapters(folder_).empty());
  EXPECT_EQ(judge_adapters({}).verdict, Verdict::skip);
  const std::string port = "class/infiniband/mlx5_0/ports/1/";
  write(port + "state", "4: ACTIVE");
  write(port + "rate", "200 Gb/sec (4X HDR)");
  write(port + "link_layer", "InfiniBand");
  write("class/infiniband/mlx5_1/ports/1/state", "1: DOWN");
  write("class/net/eth0/speed", "25000");
  write("class/net/veth/speed", "-1");
  const auto ports = read_adapters(folder_);
  ASSERT_EQ(ports.size(), 2u);
  EXPECT_EQ(ports[0].name, "mlx5_0:1");
  EXPECT_TRUE(ports[0].active());
  EXPECT_FALSE(ports[1].active());
  EXPECT_EQ(judge_adapters(ports).verdict, Verdict::pass);
  EXPECT_EQ(judge_adapters({ports[1]}).verdict, Verdict::fail);
  EXPECT_EQ(link_rate(folder_, "mlx5_0:1"), 200.0);
  EXPECT_EQ(link_rate(folder_, "mlx5_1:1"), std::nullopt);
  EXPECT_EQ(link_rate(folder_, "eth0"), 25.0);
  EXPECT_EQ(link_rate(folder_, "veth"), std::nullopt);
  EXPECT_EQ(link_rate(folder_, "absent"), std::nullopt);
}

using Folder = InAFolder;

TEST_F(Folder, IsTriedAndLeftAsItWas) {
  const FolderLook look = look_at_folder(folder_.string());
  EXPECT_EQ(look.tried, folder_.string());
  EXPECT_EQ(look.cannot_write, "");
  EXPECT_EQ(look.cannot_lock, "");
  EXPECT_GT(look.bytes_per_second, 0);
  EXPECT_GT(look.free_bytes, 0u);
  EXPECT_TRUE(fs::is_empty(folder_));
  EXPECT_EQ(look_at_folder((folder_ / "a/b").string()).tried, folder_.string());
  EXPECT_NE(look_at_folder("/proc/absent").cannot_write, "");
}

TEST_F(Folder, ShowsAMarkUntilItIsTakenAway) {
  std::string path;
  {
    const Mark mark((folder_ / "not/yet").string());
    path = mark.path();
    EXPECT_TRUE(Mark::is_there(path));
    EXPECT_EQ(fs::path(path).parent_path(), folder_);
  }
  EXPECT_TRUE(fs::is_empty(folder_));
  EXPECT_THROW(Mark("/proc"), Error);
}

/// In a process of its own, which has no threads of other tests.
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

TEST(Keeper, HasWhatAChildLeftBehind) {
  EXPECT_TRUE(in_a_fork([] {
    const Remains remains = keep([](const Leave& leave) {
      leave(bytes_of("findings"));
      leave({});
      _exit(3);
    });
    return remains.exit_code == 3 && !remains.terminated && remains.left.size() == 2 &&
           remains.left[0].size() == 8;
  }));
  EXPECT_TRUE(in_a_fork([] {
    const Remains remains = keep([](const Leave& leave) {
      leave(bytes_of("findings"));
      raise(SIGKILL);
    });
    return remains.exit_code == 137 && !remains.terminated && remains.left.size() == 1;
  }));
  EXPECT_TRUE(in_a_fork([] {
    return keep([](const Leave&) { throw std::runtime_error("thrown by the test"); }).exit_code == 1;
  }));
}

TEST(Keeper, EndsTheChildWhenItIsTerminated) {
  EXPECT_TRUE(in_a_fork([] {
    const Remains remains = keep([](const Leave& leave) {
      leave({});
      kill(getppid(), SIGTERM);
      for (;;) pause();
    });
    return remains.exit_code == 137 && remains.terminated && remains.left.size() == 1;
  }));
}

TEST(Keeper, KnowsOfASigtermThatCameBeforeTheChildsEnd) {
  EXPECT_TRUE(in_a_fork([] {
    const Remains remains = keep([](const Leave& leave) {
      leave({});
      const pid_t parent = getppid();
      const pid_t child = getpid();
      kill(parent, SIGSTOP);                     // it finds both at once
      while (!is_stopped(parent)) usleep(1000);  // between two polls
      kill(parent, SIGTERM);
      if (fork() != 0) _exit(4);
      close_range(3, ~0U, 0);                   // the pipe to the parent
      while (getppid() == child) usleep(1000);  // between two polls
      kill(parent, SIGCONT);
      _exit(0);
    });
    return remains.exit_code == 4 && remains.terminated && remains.left.size() == 1;
  }));
}

TEST(Within, GivesUpAndPassesOn) {
  EXPECT_EQ(within<int>(std::chrono::hours(1), [] { return 7; }), 7);
  const auto told = std::make_shared<std::promise<void>>();  // the thread outlives the test
  EXPECT_EQ(within<int>(std::chrono::milliseconds(50),
                        [told] {
                          told->get_future().wait();
                          return 7;
                        }),
            std::nullopt);
  told->set_value();
  EXPECT_THROW(within<int>(std::chrono::hours(1), []() -> int { throw std::runtime_error("x"); }),
               std::runtime_error);
}

}  // namespace
}  // namespace capstan::launch::doctor
