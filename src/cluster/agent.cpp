// agent.cpp -- fork before MPI_Init; MPI in the parent, the user's program in the child.
#include "cluster/agent.hpp"

#include <fcntl.h>
#include <mpi.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

#include "capstan/serialize.hpp"
#include "cluster/mpi_bootstrap.hpp"

namespace capstan::cluster {
namespace {

constexpr int kExitEnvironment = 3;
constexpr int kExitLostRank = 4;
// After a ps is lost, or has lost the coordinator, its agent waits this long for the coordinator to end the
// job with a better message.
constexpr std::chrono::seconds kCoordinatorSpeaksFirst{6};
// A child that was told to end by SIGTERM or SIGINT and has not is killed.
constexpr std::chrono::seconds kGrace{5};

struct Answer {
  Code code = Code::ok;
  std::string message;
  Table table;
};

void write_all(int fd, const void* data, std::size_t size) {
  const auto* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(fd, at, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) throw call_failed("write to a pipe", std::strerror(errno));
    at += written;
    size -= static_cast<std::size_t>(written);
  }
}

void read_all(int fd, void* data, std::size_t size, std::chrono::steady_clock::time_point deadline,
              const char* whom) {
  auto* at = static_cast<char*>(data);
  while (size > 0) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd ready{fd, POLLIN, 0};
    const int polled = left.count() > 0 ? poll(&ready, 1, static_cast<int>(left.count())) : 0;
    if (polled < 0 && errno == EINTR) continue;
    if (polled == 0) {
      throw Error(Code::deadline_exceeded,
                  std::string("waited for ") + whom +
                      " longer than the start time-out: not every rank has started (see --start-timeout)");
    }
    const ssize_t got = ::read(fd, at, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw Error(Code::unavailable, std::string(whom) + " ended before the exchange was done");
    at += got;
    size -= static_cast<std::size_t>(got);
  }
}

template <class T>
void send_value(int fd, const T& value) {
  const auto bytes = to_bytes(value);
  const std::uint64_t size = bytes.size();
  write_all(fd, &size, sizeof size);
  write_all(fd, bytes.data(), bytes.size());
}

template <class T>
T receive_value(int fd, std::chrono::steady_clock::time_point deadline, const char* whom) {
  std::uint64_t size = 0;
  read_all(fd, &size, sizeof size, deadline, whom);
  std::vector<std::byte> bytes(size);
  read_all(fd, bytes.data(), bytes.size(), deadline, whom);
  return from_bytes<T>(bytes);
}

class Agent {
 public:
  Agent(pid_t child, pid_t launcher, int from_child, int to_child)
      : child_(child), launcher_(launcher), from_child_(from_child), to_child_(to_child) {}

  [[noreturn]] void run() {
    signal(SIGPIPE, SIG_IGN);  // a child that has died is found by waiting for it, not by writing to it
    std::thread watcher([this] { watch_start(); });
    watcher.detach();  // ends with the process
    bootstrap();
    started_ = true;
    supervise();
  }

 private:
  /// Until MPI is done the main thread may sit in MPI_Init for ever; a signal, or a child that dies before
  /// the others know of it, ends the rank at once, and with it, through the launcher, the job.
  void watch_start() {
    while (!started_) {
      siginfo_t info{};
      if (!exchanged_ && waitid(P_PID, static_cast<id_t>(child_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
          info.si_pid == child_ && !exchanged_) {
        if (info.si_code == CLD_EXITED) _exit(info.si_status != 0 ? info.si_status : kExitEnvironment);
        if (told_to_end()) _exit(128 + SIGTERM);
        killed_at_start(info.si_status);
      }
      if (told_to_end()) {
        kill(child_, SIGKILL);
        _exit(128 + SIGTERM);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }

  [[noreturn]] void killed_at_start(int signal) const {
    std::fprintf(stderr, "capstan: rank %d, pid %d, was killed by signal %d (%s) before the job had begun\n",
                 launched_rank(), static_cast<int>(child_), signal, strsignal(signal));
    _exit(kExitLostRank);
  }

  /// By the launcher or its user, who signal the child as well.
  static bool told_to_end() {
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1;
  }

  void bootstrap() {
    Answer answer;
    int initialized = 0;
    try {
      // The child has its own deadline for the start; its end is seen by watch_start.
      const Hello hello = receive_value<Hello>(
          from_child_, std::chrono::steady_clock::now() + std::chrono::hours(24), "the child");
      MPI_Init(nullptr, nullptr);
      MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
      initialized = 1;
      int ranks = 0;
      MPI_Comm_size(MPI_COMM_WORLD, &ranks);
      if (const auto launched = launched_ranks(); launched && *launched != ranks) {
        throw Error(Code::failed_precondition, "the launcher started " + std::to_string(*launched) +
                                                   " ranks, but MPI sees " + std::to_string(ranks) +
                                                   ": this program was built with another MPI than the "
                                                   "mpirun in use (or srun lacks --mpi=pmix)");
      }
      answer.table = cluster::exchange(MPI_COMM_WORLD, hello);
      self_ = answer.table.members[static_cast<std::size_t>(answer.table.rank)];
      exchanged_ = true;
    } catch (const Error& error) {
      answer = {error.code(), error.what(), {}};
    }
    if (initialized != 0) MPI_Finalize();
    failed_start_ = answer.code != Code::ok;
    try {
      send_value(to_child_, answer);
    } catch (const Error&) {
      // The child is gone; supervise() reports how it ended.
    }
  }

  [[noreturn]] void supervise() {
    sigset_t watched;
    sigemptyset(&watched);
    for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) sigaddset(&watched, signal);
    bool ending = false;
    auto kill_at = std::chrono::steady_clock::time_point::max();
    while (true) {
      int status = 0;
      if (waitpid(child_, &status, WNOHANG) == child_) finish(status, ending || told_to_end());
      // The launcher's daemon has gone without a word: nobody would ever end this rank.
      if (getppid() != launcher_ && !ending) {
        ending = true;
        kill(child_, SIGKILL);
      }
      if (std::chrono::steady_clock::now() >= kill_at) kill(child_, SIGKILL);
      const timespec tick{0, 500'000'000};
      const int signal = sigtimedwait(&watched, nullptr, &tick);
      if (signal == SIGTERM || signal == SIGINT || signal == SIGHUP) {
        ending = true;
        kill_at = std::chrono::steady_clock::now() + kGrace;
      }
      if (signal > 0 && signal != SIGCHLD) kill(child_, signal);
    }
  }

  [[noreturn]] void finish(int status, bool ending) {
    const bool by_signal = WIFSIGNALED(status);
    const int code = by_signal ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (code == 0 || ending || (failed_start_ && !by_signal)) _exit(code);
    if (failed_start_) killed_at_start(WTERMSIG(status));
    const std::string how = by_signal ? "was killed by signal " + std::to_string(WTERMSIG(status)) + " (" +
                                            strsignal(WTERMSIG(status)) + ")"
                                      : "ended with exit code " + std::to_string(code);
    const bool job_goes_on = self_.role == Role::worker || self_.role == Role::evaluator;
    // It has said already that it lost the coordinator, whose agent ends the job.
    const bool lost_coordinator = !by_signal && code == kExitLostRank;
    if (by_signal || (job_goes_on && !lost_coordinator)) {
      std::fprintf(stderr, "capstan: %s, pid %d, %s%s\n", self_.name().c_str(), static_cast<int>(child_),
                   how.c_str(), job_goes_on ? "; its work goes on elsewhere" : "");
    }
    if (job_goes_on) _exit(0);
    if (self_.role == Role::ps) {
      if (by_signal || lost_coordinator) pause_for_coordinator();
      _exit(by_signal ? kExitLostRank : code);
    }
    _exit(code);
  }

  /// The launcher ends the job when the coordinator's agent exits; a signal from it, or its own end, ends
  /// this pause.
  void pause_for_coordinator() const {
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    const auto until = std::chrono::steady_clock::now() + kCoordinatorSpeaksFirst;
    const timespec tick{0, 100'000'000};
    while (getppid() == launcher_ && std::chrono::steady_clock::now() < until) {
      if (sigtimedwait(&ends, nullptr, &tick) > 0) return;
    }
  }

  pid_t child_;
  pid_t launcher_;
  int from_child_;
  int to_child_;
  std::atomic<bool> exchanged_{false};  // every rank knows this one
  std::atomic<bool> started_{false};    // and MPI is done
  bool failed_start_ = false;
  Member self_;
};

struct Pipe {
  int read_end = -1;
  int write_end = -1;
};

Pipe open_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw call_failed("pipe2", std::strerror(errno));
  return {ends[0], ends[1]};
}

}  // namespace

Table AgentLink::exchange(const Hello& hello, std::chrono::milliseconds timeout) {
  send_value(to_agent_, hello);
  const auto answer =
      receive_value<Answer>(from_agent_, std::chrono::steady_clock::now() + timeout, "the other ranks");
  close(to_agent_);
  close(from_agent_);
  if (answer.code != Code::ok) throw Error(answer.code, answer.message);
  return answer.table;
}

AgentLink split_into_agent_and_child() {
  const Pipe up = open_pipe();
  const Pipe down = open_pipe();
  std::fflush(nullptr);  // or both halves would print what is buffered

  // The agent takes signals one by one in supervise(); blocking them first leaves no gap.
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) sigaddset(&blocked, signal);
  sigprocmask(SIG_BLOCK, &blocked, &before);

  const pid_t agent = getpid();
  const pid_t launcher = getppid();
  const pid_t child = fork();
  if (child < 0) throw call_failed("fork", std::strerror(errno));
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != agent) _exit(kExitEnvironment);  // the agent died before prctl
    sigprocmask(SIG_SETMASK, &before, nullptr);
    close(up.read_end);
    close(down.write_end);
    return {down.read_end, up.write_end};
  }
  close(up.write_end);
  close(down.read_end);
  Agent(child, launcher, up.read_end, down.write_end).run();
}

}  // namespace capstan::cluster
