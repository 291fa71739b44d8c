// agent.cpp -- one child runs the program, another the exchange at the start (MPI); the parent supervises.
#include "cluster/supervisor/agent.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "base/exit_codes.hpp"
#include "base/thread_states.hpp"
#include "cluster/bootstrap/run_directory.hpp"
#include "cluster/supervisor/agent_pipe.hpp"
#include "cluster/supervisor/heartbeat.hpp"
#include "cluster/supervisor/orphaned_memory.hpp"

namespace capstan::cluster {
namespace {

using Clock = std::chrono::steady_clock;

// Pause before the agent of a dead ps exits, in which the coordinator can end the job with a better message.
// Longer than twice the default of --ps-wait.
constexpr std::chrono::seconds kCoordinatorReportsFirst{12};
// Grace period of a child after SIGTERM or SIGINT, before SIGKILL.
constexpr std::chrono::seconds kGrace{5};
// Limit of the wait for a killed child, which a file system may block.
constexpr std::chrono::seconds kDies{2};
// Pause before a restart. It doubles, up to the last, for a child that has lived for less than kLived.
constexpr std::chrono::milliseconds kFirstPause{100};
constexpr std::chrono::milliseconds kLastPause{1600};
constexpr std::chrono::seconds kLived{1};
// Longest interval between two polls of a running agent. After a longer one, the agent itself was stopped,
// perhaps with its child.
constexpr std::chrono::seconds kLongestPoll{1};
// Time limit for the rest of a hello whose beginning has arrived.
constexpr std::chrono::seconds kHelloArrives{10};
// Time limit for the rest of an answer whose beginning has arrived.
constexpr std::chrono::seconds kAnswerArrives{10};

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) sigaddset(&set, signal);
  return set;
}

/// Returns true if the launcher or the user has sent a termination signal; they signal the child as well.
bool told_to_end() {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1;
}

/// Open MPI's mpirun ends the job with the first rank whose exit code is not 0, and returns that code. The
/// mpirun of MPICH waits for all ranks, and returns the bitwise OR of their codes.
bool launcher_waits_for_all() {
  return std::getenv("PMI_RANK") != nullptr && std::getenv("MPI_LOCALRANKID") != nullptr;
}

/// Forks a child that dies with its parent. Throws Error(internal).
pid_t fork_child() {
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) throw call_failed("fork", std::strerror(errno));
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(kExitEnvironment);  // the parent died before prctl
  }
  return child;
}

/// Runs in the second child.
[[noreturn]] void run_exchange(const AgentOptions& options, FileDescriptor from_child,
                               FileDescriptor to_agent) {
  prctl(PR_SET_NAME, "capstan-start");  // its name in ps and top
  // exit() calls the handlers that MPI registers below: MPICH 5 tells its launcher there that this process
  // ends. Then it calls this one, so that those of the program, and the destructors of its objects, do not
  // run here.
  std::atexit([] { _exit(0); });
  StartAnswer answer;
  try {
    const auto hello = [&from_child, &answer]() -> std::optional<Hello> {
      pollfd ready{from_child.get(), POLLIN, 0};
      if (poll(&ready, 1, 0) <= 0) return std::nullopt;
      answer.hello_read = true;
      try {
        return receive_value<Hello>(from_child.get(), Clock::now() + kHelloArrives, "this rank's program");
      } catch (const Error& error) {
        answer.program_ended = error.code() == Code::unavailable;
        throw;
      }
    };
    answer.table = options.exchange(hello);
  } catch (const Error& error) {
    answer.code = error.code();
    answer.message = error.what();
  } catch (const std::exception& error) {
    answer.code = Code::internal;
    answer.message = error.what();
  }
  try {
    send_value(to_agent.get(), answer);
  } catch (const Error&) {
    _exit(kExitEnvironment);  // the agent is dead
  }
  to_agent.reset();
  if (answer.code != Code::ok || !options.finalize) _exit(0);
  options.finalize();
  std::exit(0);
}

/// Returns null, with a message, if the system refuses the memory.
AgentLink::Memory persistent_memory() {
  try {
    return transport::PersistentMemory::create();
  } catch (const Error& error) {
    std::fprintf(
        stderr,
        "capstan: no persistent memory, so a killed ps or coordinator of this rank is not restarted: "
        "%s\n",
        error.what());
    return nullptr;
  }
}

class Agent {
 public:
  Agent(pid_t child, pid_t exchange, pid_t launcher, FileDescriptor to_child, FileDescriptor from_exchange,
        sigset_t mask, AgentLink::Memory memory, const AgentOptions& options)
      : child_(child),
        exchange_(exchange),
        launcher_(launcher),
        to_child_(std::move(to_child)),
        from_exchange_(std::move(from_exchange)),
        mask_(mask),
        memory_(std::move(memory)),
        run_dir_(options.run_dir),
        name_(options.name),
        has_launcher_(options.has_launcher) {}

  /// Returns only in the children that replace a dead child; never in the agent.
  AgentLink run() {
    pipe_handler_ = signal(SIGPIPE, SIG_IGN);  // waitpid reports a dead child
    start();
    return supervise();
  }

 private:
  /// Waits for the exchange, which may block forever. A termination signal, or the death of a child, ends the
  /// rank at once, and the launcher then ends the job.
  void start() {
    while (true) {
      end_if_dead(child_);
      if (told_to_end() || launcher_is_dead()) end_start(128 + SIGTERM);
      pollfd answered{from_exchange_.get(), POLLIN, 0};
      if (poll(&answered, 1, 50) > 0) break;
    }
    const StartAnswer answer = answer_of_exchange();
    failed_start_ = answer.code != Code::ok;
    ended_at_start_ = answer.program_ended;
    table_ = answer.table;
    if (!failed_start_) self_ = table_.members[static_cast<std::size_t>(table_.rank)];
    began_ = Clock::now();
    try {
      send_value(to_child_.get(), answer);
    } catch (const Error&) {
      // The child is dead; supervise() reports how it ended.
    }
    to_child_.reset();
    if (failed_start_ && !answer.hello_read && !exits_soon(child_)) {
      std::fprintf(stderr, "capstan: %s, pid %d, has not opened its network; it is killed: %s\n",
                   name_.c_str(), static_cast<int>(child_), answer.message.c_str());
      end_start(kExitLostRank);
    }
  }

  /// Exits before the start is complete: kills both children and removes the memory that they leave behind.
  [[noreturn]] void end_start(int code) const {
    const auto until = Clock::now() + kDies;
    for (const pid_t pid : {child_, exchange_}) {
      if (pid > 0) kill(pid, SIGKILL);
    }
    for (const pid_t pid : {child_, exchange_}) {
      while (pid > 0 && waitpid(pid, nullptr, WNOHANG) == 0 && Clock::now() < until) usleep(1000);
    }
    remove_orphans();
    _exit(code);
  }

  void remove_orphans() const {
    int segments = remove_orphaned_memory(first_began_);
    for (const pid_t pid : {child_, exchange_}) {
      if (pid > 0) segments += remove_orphaned_segments(pid, first_began_);
    }
    if (segments == 0) return;
    std::fprintf(stderr, "capstan: removed the shared memory that UCX of %s had left behind: %d segment%s\n",
                 name_.c_str(), segments, segments == 1 ? "" : "s");
  }

  StartAnswer answer_of_exchange() {
    try {
      auto answer =
          receive_value<StartAnswer>(from_exchange_.get(), Clock::now() + kAnswerArrives, "the exchange");
      from_exchange_.reset();
      end_exchange();
      return answer;
    } catch (const Error&) {
      while (true) {  // only the death of the exchange closes the pipe without an answer
        end_if_dead(exchange_);
        usleep(1000);
      }
    }
  }

  /// Waits for the end of the exchange, whose exit code does not matter. If the exchange hangs, the child
  /// exits, since its wait for the table has a deadline.
  void end_exchange() {
    while (waitpid(exchange_, nullptr, WNOHANG) == 0) {
      end_if_dead(child_);
      if (told_to_end() || launcher_is_dead()) end_start(128 + SIGTERM);
      usleep(1000);
    }
    exchange_ = 0;
  }

  /// Returns true if the process exits within kHelloArrives. A child that is only late reads the error of the
  /// exchange and reports it.
  static bool exits_soon(pid_t pid) {
    const auto until = Clock::now() + kHelloArrives;
    while (Clock::now() < until) {
      siginfo_t info{};
      if (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
          info.si_pid == pid) {
        return true;
      }
      usleep(10'000);
    }
    return false;
  }

  /// Exits if this child has ended before the start is complete.
  void end_if_dead(pid_t pid) const {
    siginfo_t info{};
    if (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid != pid) {
      return;
    }
    if (info.si_code == CLD_EXITED) {
      if (pid == child_ && info.si_status == 0) report_ended_at_start();
      end_start(info.si_status != 0 ? info.si_status : kExitEnvironment);
    }
    if (told_to_end()) end_start(128 + SIGTERM);
    report_killed_at_start(pid, info.si_status);
    end_start(kExitLostRank);
  }

  /// Returns true if the launcher's daemon has died: no other process would ever end this rank.
  bool launcher_is_dead() const { return has_launcher_ && getppid() != launcher_; }

  void report_killed_at_start(pid_t pid, int signal) const {
    std::fprintf(stderr, "capstan: %s, pid %d, was killed by signal %d (%s) before the job had begun\n",
                 name_.c_str(), static_cast<int>(pid), signal, strsignal(signal));
  }

  /// For a program under capstan-agent that has not called Cluster::join.
  void report_ended_at_start() const {
    std::fprintf(stderr, "capstan: %s, pid %d, ended with exit code 0 before it had joined the job\n",
                 name_.c_str(), static_cast<int>(child_));
  }

  /// Runs until the child has ended for good. Returns in each new child.
  AgentLink supervise() {
    const sigset_t watched = watched_signals();
    bool ending = false;
    auto kill_at = Clock::time_point::max();
    while (true) {
      int status = 0;
      if (child_ > 0 && waitpid(child_, &status, WNOHANG) == child_) {
        ending = ending || told_to_end();
        const auto died = Clock::now();
        if (WIFSIGNALED(status)) remove_orphans();  // may wait for other agents
        if (!schedules_restart(status, ending, died)) finish(status, ending);
        child_ = 0;
      }
      if (launcher_is_dead() && !ending) {
        ending = true;
        if (child_ > 0) kill(child_, SIGKILL);
      }
      if (child_ == 0 && ending) _exit(128 + SIGTERM);
      if (child_ == 0 && Clock::now() >= restart_at_) {
        Heartbeat::pause();
        hung_ = false;
        child_ = fork_child();
        if (child_ == 0) return link_of_restart();
        began_ = Clock::now();
      }
      if (Clock::now() >= kill_at) kill(child_, SIGKILL);
      kill_if_hanging();
      const timespec tick = until_next_poll();
      const int signal = sigtimedwait(&watched, nullptr, &tick);
      if (signal == SIGTERM || signal == SIGINT || signal == SIGHUP) {
        ending = true;
        kill_at = Clock::now() + kGrace;
      }
      if (signal > 0 && signal != SIGCHLD && child_ > 0) kill(child_, signal);
    }
  }

  /// Kills a child whose heartbeat has stopped, because it is stopped or hangs. The other ranks already count
  /// it as dead.
  void kill_if_hanging() {
    const auto now = Clock::now();
    if (now >= polled_ + kLongestPoll) resumed_ = now;
    polled_ = now;
    const auto beat = Heartbeat::last();
    if (!beat || child_ <= 0 || now < std::max(beat->at, resumed_) + beat->most_silence) return;
    std::fprintf(stderr,
                 "capstan: %s, pid %d, is stopped or hangs: no heartbeat for %.1f s; it is killed "
                 "(its threads: %s)\n",
                 self_.name().c_str(), static_cast<int>(child_),
                 std::chrono::duration<double>(now - beat->at).count(), thread_states(child_).c_str());
    kill(child_, SIGKILL);
    Heartbeat::pause();
    hung_ = true;
  }

  timespec until_next_poll() const {
    std::chrono::nanoseconds wait = std::chrono::milliseconds(500);
    if (child_ == 0) {
      wait =
          std::clamp<std::chrono::nanoseconds>(restart_at_ - Clock::now(), std::chrono::nanoseconds(0), wait);
    }
    return {0, wait.count()};
  }

  /// "ended with exit code 3" or "was killed by signal 9 (Killed)"
  static std::string end_of(int status) {
    if (!WIFSIGNALED(status)) return "ended with exit code " + std::to_string(WEXITSTATUS(status));
    return "was killed by signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) +
           ")";
  }

  /// Returns true for death by a signal that does not ask the process to end.
  static bool was_killed(int status) {
    if (!WIFSIGNALED(status)) return false;
    const int signal = WTERMSIG(status);
    return signal != SIGTERM && signal != SIGINT && signal != SIGHUP;
  }

  /// Returns true if the agent killed the child because its heartbeat had stopped. The coordinator then
  /// counts it as dead, and continues without it or has ended the job. Returns false for a worker, which
  /// restarts as a new rank.
  bool was_hanging() const { return hung_ && self_.role != Role::worker; }

  /// Returns true if the child is to be restarted, and sets the time and the rank of the restart.
  bool schedules_restart(int status, bool ending, Clock::time_point died) {
    const bool done = WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == kExitLostRank);
    if (done || ending || failed_start_ || restart_number_ >= table_.restarts) return false;
    if (Heartbeat::restart_forbidden() || was_hanging()) return false;
    // A ps that exited by itself may find the cause in its persistent memory again, so only a killed ps is
    // restarted. A spare that uses persistent memory has become a ps.
    const bool returns =
        self_.role == Role::worker ||
        (one_fabric(self_.role) && WIFSIGNALED(status) && memory_ && memory_->was_mapped()) ||
        (self_.role == Role::coordinator && was_killed(status) && memory_ && table_.coordinator_may_return());
    if (!returns) return false;
    pause_ = died - began_ >= kLived ? kFirstPause : std::min(2 * pause_, kLastPause);
    restart_at_ = died + pause_;
    ++restart_number_;
    std::fprintf(stderr, "capstan: %s, pid %d, %s; it is started again in %.1f s (%d of at most %d times)\n",
                 self_.name().c_str(), static_cast<int>(child_), end_of(status).c_str(),
                 std::chrono::duration<double>(pause_).count(), restart_number_, table_.restarts);
    // A ps and a coordinator keep their rank, to which their state and connections belong.
    if (self_.role == Role::worker) self_.rank = table_.rank_of_restart(self_.index, restart_number_);
    return true;
  }

  /// Restores the signals to their state in the first child. Called in the new child.
  AgentLink link_of_restart() {
    signal(SIGPIPE, pipe_handler_);
    sigprocmask(SIG_SETMASK, &mask_, nullptr);
    table_.rank = self_.rank;
    return AgentLink(std::move(table_), memory_, restart_number_);
  }

  [[noreturn]] void finish(int status, bool ending) {
    if (self_.role == Role::coordinator && !run_dir_.empty()) {
      remove_run_file(run_dir_, self_.host, child_);
    }
    const bool by_signal = WIFSIGNALED(status);
    const int code = by_signal ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (code == 0 && !ending && ended_at_start_) {
      report_ended_at_start();
      _exit(kExitEnvironment);
    }
    if (code == 0 || ending || (failed_start_ && !by_signal)) _exit(code);
    if (failed_start_) {
      report_killed_at_start(child_, WTERMSIG(status));
      _exit(kExitLostRank);
    }
    const bool job_goes_on =
        self_.role == Role::worker || self_.role == Role::evaluator || self_.role == Role::spare;
    // The child has reported that it lost the coordinator, whose agent ends the job.
    const bool lost_coordinator = !by_signal && code == kExitLostRank;
    if (by_signal || (job_goes_on && !lost_coordinator)) {
      std::fprintf(stderr, "capstan: %s, pid %d, %s%s\n", self_.name().c_str(), static_cast<int>(child_),
                   end_of(status).c_str(),
                   self_.role == Role::worker ? "; its work goes on elsewhere"
                   : job_goes_on              ? "; the job goes on without it"
                   : is_replaced(by_signal)   ? "; a spare replaces it"
                   : coordinator_was_last()   ? "; it had ended the job, or could not continue it"
                                              : "");
    }
    if (has_launcher_ && (job_goes_on || is_replaced(by_signal || lost_coordinator) || was_hanging()))
      _exit(0);
    if (self_.role == Role::ps) {
      // Only the coordinator's agent returns the job's result if the launcher combines all codes into one, or
      // if this ps was killed near the end of the job, so that its new process found no coordinator.
      if (has_launcher_ && lost_coordinator && (restart_number_ > 0 || launcher_waits_for_all())) _exit(0);
      // If the coordinator may be restarted, this ps has waited, so the coordinator's agent has had time to
      // report.
      if (by_signal || (lost_coordinator && !table_.coordinator_may_return())) pause_for_coordinator();
      _exit(by_signal ? kExitLostRank : code);
    }
    _exit(code);
  }

  bool coordinator_was_last() const {
    return self_.role == Role::coordinator && table_.coordinator_may_return() &&
           Heartbeat::restart_forbidden();
  }

  /// Returns true if a spare replaces the dead ps; if the spare cannot, the coordinator ends the job. A ps
  /// that lost the coordinator is replaced, too, since it may be the only rank that lost it.
  bool is_replaced(bool lost) const {
    return lost && self_.role == Role::ps && table_.count(Role::spare) > 0;
  }

  /// Pauses until the launcher, which ends the job once the coordinator's agent has exited, sends a signal or
  /// dies; at most for kCoordinatorReportsFirst.
  void pause_for_coordinator() const {
    if (!has_launcher_ || launcher_waits_for_all()) return;
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    const auto until = Clock::now() + kCoordinatorReportsFirst;
    const timespec tick{0, 100'000'000};
    while (!launcher_is_dead() && Clock::now() < until) {
      if (sigtimedwait(&ends, nullptr, &tick) > 0) return;
    }
  }

  pid_t child_;     // 0: dead, and to be restarted
  pid_t exchange_;  // 0: has ended
  pid_t launcher_;
  FileDescriptor to_child_;
  FileDescriptor from_exchange_;
  sigset_t mask_;  // signal mask of the program
  AgentLink::Memory memory_;
  std::string run_dir_;
  std::string name_;  // name of this rank in messages until the table exists
  bool has_launcher_;
  void (*pipe_handler_)(int) = SIG_DFL;  // SIGPIPE handler of the program
  bool failed_start_ = false;
  bool ended_at_start_ = false;  // the child sent no hello
  Table table_;
  Member self_;
  int restart_number_ = 0;
  const std::chrono::system_clock::time_point first_began_ = std::chrono::system_clock::now();
  Clock::time_point began_{};  // start of the current child
  Clock::time_point restart_at_{};
  std::chrono::milliseconds pause_ = kFirstPause / 2;
  bool hung_ = false;            // the agent killed the child because its heartbeat had stopped
  Clock::time_point polled_{};   // last poll of the heartbeat
  Clock::time_point resumed_{};  // a heartbeat that was missed before this time does not count
};

}  // namespace

AgentLink split_into_agent_and_child(const AgentOptions& options) {
  Heartbeat::share();
  Pipe up = open_pipe();      // child to exchange
  Pipe across = open_pipe();  // exchange to agent
  Pipe down = open_pipe();    // agent to child
  std::fflush(nullptr);       // otherwise both processes would print the buffered output

  // The agent receives signals in supervise(); blocking them before the fork leaves no gap.
  const sigset_t blocked = watched_signals();
  sigset_t before;
  sigprocmask(SIG_BLOCK, &blocked, &before);

  AgentLink::Memory memory = persistent_memory();
  const pid_t launcher = getppid();
  const pid_t child = fork_child();
  if (child == 0) {
    sigprocmask(SIG_SETMASK, &before, nullptr);
    return {std::move(down.read_end), std::move(up.write_end), std::move(memory)};  // the other ends close
  }
  const pid_t exchange = fork_child();
  if (exchange == 0) {
    up.write_end.reset();
    across.read_end.reset();
    down = {};
    run_exchange(options, std::move(up.read_end), std::move(across.write_end));
  }
  up = {};
  across.write_end.reset();
  down.read_end.reset();
  return Agent(child, exchange, launcher, std::move(down.write_end), std::move(across.read_end), before,
               std::move(memory), options)
      .run();
}

}  // namespace capstan::cluster
