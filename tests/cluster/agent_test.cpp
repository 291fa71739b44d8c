// agent_test.cpp -- the agent of a rank: its data for its child, restarts, and exit codes.
#include "cluster/supervisor/agent.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <new>
#include <optional>
#include <string>

#include "base/exit_codes.hpp"
#include "capstan/error.hpp"
#include "capstan/serialize.hpp"
#include "cluster/membership/persistent_record.hpp"
#include "cluster/supervisor/agent_pipe.hpp"
#include "cluster/supervisor/heartbeat.hpp"
#include "support/poll.hpp"

namespace capstan::cluster {
namespace {

using std::chrono::milliseconds;

/// Observations of a rank's processes, in memory that they share with the test.
struct Board {
  std::atomic<int> starts{0};
  std::atomic<int> rank_of_restart{-1};
  std::atomic<bool> finalized{false};
  std::atomic<bool> ready{false};
  std::atomic<pid_t> child{0};
};

/// Exit code of a child whose check failed.
constexpr int kWrong = 99;

void block(int number) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  sigprocmask(SIG_BLOCK, &set, nullptr);
}
/// REQUIRES: this process has blocked the signal.
bool receives(int number) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  const timespec timeout{20, 0};
  return sigtimedwait(&set, nullptr, &timeout) == number;
}
/// Called by a child: sends a signal to its agent, which forwards it to the child.
bool hears_back_from_agent(int number) {
  block(number);
  kill(getppid(), number);
  return receives(number);
}

class AgentTest : public testing::Test {
 protected:
  using Program = std::function<int(AgentLink&)>;

  void SetUp() override {
    void* page = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(page, MAP_FAILED);
    board_ = new (page) Board;
    testing::internal::CaptureStderr();
  }
  void TearDown() override {
    const std::string said = testing::internal::GetCapturedStderr();
    if (HasFailure()) std::fputs(said.c_str(), stderr);
    munmap(board_, sizeof(Board));
  }

  /// The start process of this rank: exchanges a table of the coordinator and this rank.
  static Table table_of(const Hello& hello, Role role, int restarts) {
    Table table;
    table.rank = role == Role::coordinator ? 0 : 1;
    table.restarts = restarts;
    table.members = {{0, Role::coordinator, 0, "n0", 1, {}, {}}};
    if (role != Role::coordinator) table.members.push_back({1, role, 0, "n1", 2, {}, {}});
    table.members.back().host = hello.host;
    return table;
  }

  AgentOptions options(Role role, int restarts = 0) {
    AgentOptions options;
    options.name = "the rank of the test";
    options.exchange = [role, restarts](const HelloSource& source) {
      const std::optional<Hello> hello = poll(source);
      if (!hello) throw Error(Code::deadline_exceeded, "the program has not sent its hello");
      return table_of(*hello, role, restarts);
    };
    options.finalize = [this] { board_->finalized = true; };
    return options;
  }

  static Table exchange(AgentLink& link) {
    Hello hello;
    hello.host = "host of the test";
    return link.exchange(hello, std::chrono::seconds(20));
  }

  /// Starts a rank as a launcher does; returns the pid of its agent.
  pid_t start(const AgentOptions& options, const Program& program) {
    const pid_t agent = fork();
    if (agent != 0) return agent;
    try {
      AgentLink link = split_into_agent_and_child(options);
      ++board_->starts;
      board_->child = getpid();
      _exit(program(link));
    } catch (const std::exception& error) {
      std::fprintf(stderr, "the child: %s\n", error.what());
    }
    _exit(kWrong);
  }

  /// Returns the agent's exit code; 1000 + signal if a signal killed it; -1 if it does not end in time.
  static int end_of(pid_t agent) {
    int status = 0;
    const bool ended = poll_until([&] { return waitpid(agent, &status, WNOHANG) == agent; });
    if (!ended) {
      kill(agent, SIGKILL);
      waitpid(agent, nullptr, 0);
      return -1;
    }
    return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  int run(const AgentOptions& options, const Program& program) { return end_of(start(options, program)); }

  Board* board_ = nullptr;
};

TEST_F(AgentTest, PassesTheTableOfTheExchangeToTheChild) {
  EXPECT_EQ(run(options(Role::worker),
                [](AgentLink& link) {
                  const Table table = exchange(link);
                  const bool right = table.rank == 1 && table.members.size() == 2 &&
                                     table.members[1].host == "host of the test" &&
                                     link.restart_number() == 0;
                  return right ? 0 : kWrong;
                }),
            0);
  EXPECT_EQ(board_->starts, 1);
  EXPECT_TRUE(board_->finalized);
}

TEST_F(AgentTest, PassesTheErrorOfTheExchangeToTheChild) {
  AgentOptions fails = options(Role::worker);
  fails.exchange = [](const HelloSource&) -> Table { throw Error(Code::failed_precondition, "no such job"); };
  EXPECT_EQ(run(fails,
                [](AgentLink& link) {
                  try {
                    (void)exchange(link);
                  } catch (const Error& error) {
                    const bool right = error.code() == Code::failed_precondition &&
                                       std::string(error.what()) == "no such job";
                    return right ? 17 : kWrong;
                  }
                  return kWrong;
                }),
            17)
      << "the exit code of the child";
  EXPECT_FALSE(board_->finalized);
}

TEST_F(AgentTest, SurvivesACrashAfterTheExchange) {
  AgentOptions crashes = options(Role::worker);
  crashes.finalize = [] { ::raise(SIGKILL); };
  EXPECT_EQ(run(crashes,
                [](AgentLink& link) {
                  (void)exchange(link);
                  return 0;
                }),
            0);
}

TEST_F(AgentTest, ReturnsTheExitCodeOfTheCoordinator) {
  const auto ends_with_5 = [](AgentLink& link) {
    (void)exchange(link);
    return 5;
  };
  EXPECT_EQ(run(options(Role::coordinator), ends_with_5), 5);
}

TEST_F(AgentTest, ReturnsTheSignalOfAKilledCoordinator) {
  EXPECT_EQ(run(options(Role::coordinator),
                [](AgentLink& link) {
                  (void)exchange(link);
                  return ::raise(SIGKILL);
                }),
            128 + SIGKILL);
}

TEST_F(AgentTest, ReturnsLostRankForAChildKilledBeforeTheExchange) {
  EXPECT_EQ(run(options(Role::worker), [](AgentLink&) { return ::raise(SIGKILL); }), kExitLostRank);
}

TEST_F(AgentTest, ReturnsTheExitCodeOfAChildThatEndsBeforeTheExchange) {
  EXPECT_EQ(run(options(Role::worker), [](AgentLink&) { return 6; }), 6);
}

TEST_F(AgentTest, ReturnsAnErrorForAChildThatEndsWithZeroBeforeTheExchange) {
  // The agent learns of it from the child or from the exchange, whichever comes first.
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(run(options(Role::worker), [](AgentLink&) { return 0; }), kExitEnvironment);
  }
}

TEST_F(AgentTest, RestartsAWorkerWithTheTableAndANewRank) {
  EXPECT_EQ(run(options(Role::worker, 2),
                [this](AgentLink& link) {
                  const Table table = exchange(link);
                  if (link.restart_number() == 0) return ::raise(SIGKILL);
                  board_->rank_of_restart = table.rank;
                  const bool right =
                      link.restart_number() == 1 && table.members[1].host == "host of the test";
                  return right ? 0 : kWrong;
                }),
            0);
  EXPECT_EQ(board_->starts, 2);
  EXPECT_EQ(board_->rank_of_restart, 2) << "the first rank beyond the members";
}

TEST_F(AgentTest, RestartsAWorkerUpToTheLimitWithoutEndingTheJob) {
  EXPECT_EQ(run(options(Role::worker, 2),
                [](AgentLink& link) {
                  (void)exchange(link);
                  return ::raise(SIGKILL);
                }),
            0);
  EXPECT_EQ(board_->starts, 3);
}

TEST_F(AgentTest, DoesNotRestartAWorkerThatForbidsIt) {
  EXPECT_EQ(run(options(Role::worker, 2),
                [](AgentLink& link) {
                  (void)exchange(link);
                  Heartbeat::forbid_restart();
                  return ::raise(SIGKILL);
                }),
            0);
  EXPECT_EQ(board_->starts, 1);
}

TEST_F(AgentTest, DoesNotRestartAWorkerThatLostTheCoordinator) {
  EXPECT_EQ(run(options(Role::worker, 2),
                [](AgentLink& link) {
                  (void)exchange(link);
                  return kExitLostRank;
                }),
            0);
  EXPECT_EQ(board_->starts, 1);
}

TEST_F(AgentTest, RestartsAPsWithItsRankAndItsPersistentMemory) {
  EXPECT_EQ(run(options(Role::ps, 1),
                [this](AgentLink& link) {
                  const Table table = exchange(link);
                  const auto& memory = link.persistent_memory();
                  if (!memory) return kWrong;
                  if (link.restart_number() == 0) {
                    PersistentRecord(memory).write(to_bytes(std::string("from the first process")));
                    return ::raise(SIGKILL);
                  }
                  board_->rank_of_restart = table.rank;
                  const auto found = from_bytes<std::string>(PersistentRecord(memory).read());
                  return found == "from the first process" ? 0 : kWrong;
                }),
            0);
  EXPECT_EQ(board_->starts, 2);
  EXPECT_EQ(board_->rank_of_restart, 1);
}

TEST_F(AgentTest, RestartsAWorkerWhoseHeartbeatStops) {
  EXPECT_EQ(run(options(Role::worker, 1),
                [](AgentLink& link) {
                  (void)exchange(link);
                  if (link.restart_number() == 1) return 0;
                  Heartbeat::beat(milliseconds(100));
                  while (true) pause();
                }),
            0);
  EXPECT_EQ(board_->starts, 2);
}

TEST_F(AgentTest, DoesNotKillAChildWhoseHeartbeatIsSuspended) {
  EXPECT_EQ(run(options(Role::coordinator),
                [](AgentLink& link) {
                  (void)exchange(link);
                  Heartbeat::beat(milliseconds(1));
                  Heartbeat::pause();
                  // The agent checks the heartbeat before it waits for the second signal.
                  for (int i = 0; i < 2; ++i) {
                    if (!hears_back_from_agent(SIGUSR2)) return kWrong;
                  }
                  return 0;
                }),
            0);
}

TEST_F(AgentTest, ForwardsSignalsToItsChild) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) {
    board_->ready = false;
    const pid_t agent = start(options(Role::coordinator), [this, number](AgentLink& link) {
      (void)exchange(link);
      block(number);
      board_->ready = true;
      return receives(number) ? 7 : kWrong;
    });
    ASSERT_TRUE(poll_until([&] { return board_->ready.load(); }));
    kill(agent, number);
    EXPECT_EQ(end_of(agent), 7) << "signal " << number;
  }
}

TEST_F(AgentTest, DoesNotRestartAWorkerAfterATerminationSignal) {
  const pid_t agent = start(options(Role::worker, 2), [this](AgentLink& link) {
    (void)exchange(link);
    board_->ready = true;
    while (true) pause();
    return kWrong;
  });
  ASSERT_TRUE(poll_until([&] { return board_->ready.load(); }));
  kill(agent, SIGTERM);
  EXPECT_EQ(end_of(agent), 128 + SIGTERM);
  EXPECT_EQ(board_->starts, 1);
}

TEST_F(AgentTest, ChildDiesWithAKilledAgent) {
  Pipe pipe = open_pipe();
  const pid_t agent = start(options(Role::worker, 2), [&](AgentLink& link) {
    (void)exchange(link);
    board_->ready = true;
    while (true) pause();
    return kWrong;
  });
  pipe.write_end.reset();  // open in all processes of the rank until they end
  ASSERT_TRUE(poll_until([&] { return board_->ready.load(); }));
  kill(agent, SIGKILL);
  EXPECT_EQ(end_of(agent), 1000 + SIGKILL);
  pollfd all_ended{pipe.read_end.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&all_ended, 1, 20'000), 1) << "the child still runs";
  EXPECT_NE(all_ended.revents & POLLHUP, 0);
  EXPECT_EQ(board_->starts, 1);
}

}  // namespace
}  // namespace capstan::cluster
