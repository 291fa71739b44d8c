// path_report_test.cpp -- paths that --require-transport rejects, and log lines about paths.
#include "client/channel/path_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/settings.hpp"
#include "capstan/error.hpp"
#include "support/expect_error.hpp"
#include "support/log_text.hpp"
#include "transport/loop/loop.hpp"

namespace capstan::client {
namespace {

using testing::HasSubstr;

/// A ps that is reached by "rc_mlx5" or "tcp".
class NetworkPeer : public transport::Peer {
 public:
  explicit NetworkPeer(bool hardware) : Peer(3, "ps 0"), hardware_(hardware) {}
  void send(std::uint16_t, transport::Bytes, transport::Bytes) override {}
  void send_in_place(std::uint16_t, transport::Bytes, transport::Bytes, std::uint32_t&) override {}
  void disconnect() noexcept override {}
  std::unique_ptr<transport::Window> open_window(const transport::RegionKey&,
                                                 transport::WindowPath) override {
    return nullptr;
  }
  std::string transports() const override { return hardware_ ? "rc_mlx5" : "tcp"; }
  bool has_hardware_rma() const override { return hardware_; }

 private:
  bool hardware_;
};

class PathReport : public testing::Test {
 protected:
  /// Starts ranks 0 to 3: the coordinator, two workers and a ps.
  void start(const std::string& required) {
    Settings settings;
    settings.set_from_flag("ps", "1");
    settings.set_from_flag("require-transport", required);
    runtimes_ = cluster::Runtime::as_threads(settings, 4, hub_);
  }
  void report(int rank, bool same_host, Path path, bool hardware) {
    const cluster::Runtime& runtime = *runtimes_.at(static_cast<std::size_t>(rank));
    cluster::Member ps = runtime.member(Role::ps, 0);
    if (!same_host) ps.host = "node-of-ps";
    report_path(runtime, ps, path, NetworkPeer(hardware));
  }

  transport::LoopHub hub_;
  std::vector<std::shared_ptr<cluster::Runtime>> runtimes_;
};

TEST_F(PathReport, AcceptsEveryPathByDefault) {
  start("any");
  for (const Path path : {Path::mapped, Path::rma, Path::messages}) {
    for (const bool same_host : {false, true}) {
      EXPECT_NO_THROW(report(1, same_host, path, /*hardware=*/false));
    }
  }
}

TEST_F(PathReport, RejectsPathsThatAreNotMapped) {
  start("mapped");
  report(1, /*same_host=*/true, Path::mapped, /*hardware=*/false);
  for (const Path path : {Path::rma, Path::messages}) {
    const std::string error =
        error_of(Code::failed_precondition, [&] { report(1, /*same_host=*/true, path, /*hardware=*/true); });
    for (const std::string& expected : {std::string("--require-transport=mapped"), std::string("ps 0"),
                                        std::string(to_string(path)), std::string("rc_mlx5")}) {
      EXPECT_THAT(error, HasSubstr(expected));
    }
  }
}

TEST_F(PathReport, RejectsPathsToAnotherHostWithoutRdma) {
  start("rdma");
  report(1, /*same_host=*/false, Path::rma, /*hardware=*/true);
  for (const Path path : {Path::rma, Path::messages}) {
    const std::string error = error_of(Code::failed_precondition,
                                       [&] { report(1, /*same_host=*/false, path, /*hardware=*/false); });
    for (const char* expected : {"--require-transport=rdma", "node-of-ps", "tcp"}) {
      EXPECT_THAT(error, HasSubstr(expected));
    }
  }
}

TEST_F(PathReport, LogsEachKindOfPathAtMostOncePerProcess) {
  start("any");
  const LogText log;
  for (int time = 0; time < 3; ++time) report(0, /*same_host=*/false, Path::rma, /*hardware=*/false);
  EXPECT_LE(count_of("[info]", log.text()), 1) << "0 if another test of this process logged it";
  EXPECT_LE(count_of("[warning]", log.text()), 1);
}

TEST_F(PathReport, LogsPathsInTheSameProcessOnlyAtLevelDebug) {
  start("any");
  const LogText log;
  report(0, /*same_host=*/true, Path::in_process, /*hardware=*/false);
  EXPECT_EQ(count_of("[info]", log.text()), 0);
  EXPECT_EQ(count_of("[warning]", log.text()), 0);
}

}  // namespace
}  // namespace capstan::client
