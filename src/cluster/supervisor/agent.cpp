// agent.cpp -- the program in one child, the exchange at the start (MPI) in another, neither in the parent.
#include "cluster/supervisor/agent.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
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

// After a ps is lost, or has lost the coordinator, its agent waits this long for the coordinator to end the
// job with a better message: longer than twice --ps-wait, as it is unless set.
constexpr std::chrono::seconds kCoordinatorSpeaksFirst{12};
// A child that was told to end by SIGTERM or SIGINT and has not is killed.
constexpr std::chrono::seconds kGrace{5};
// One that was killed, unless a file system keeps it.
constexpr std::chrono::seconds kDies{2};
// Before a worker is started again; doubled each time that it has not lived for kLived, up to the last.
constexpr std::chrono::milliseconds kFirstPause{100};
constexpr std::chrono::milliseconds kLastPause{1600};
constexpr std::chrono::seconds kLived{1};
// An agent that has not polled for this long was itself stopped, perhaps with its child.
constexpr std::chrono::seconds kLongLook{1};
// Time limit for the rest of a hello whose beginning has arrived.
constexpr std::chrono::seconds kHelloArrives{10};
// The child waits for the exchange, which has a deadline and says for whom it waited.
constexpr std::chrono::seconds kExchangeSpeaksFirst{10};

struct Answer {
  Code code = Code::ok;
  std::string message;
  Table table;
  bool program_came = false;  // the child will read this
};

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) sigaddset(&set, signal);
  return set;
}

/// By the launcher or its user, who signal the child as well.
bool told_to_end() {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1;
}

/// Open MPI's mpirun ends the job with the first rank whose exit code is not 0, and returns that code.
/// MPICH's waits for all ranks, and returns their codes OR-ed into one.
bool launcher_waits_for_all() {
  return std::getenv("PMI_RANK") != nullptr && std::getenv("MPI_LOCALRANKID") != nullptr;
}

/// A fork whose child dies with its parent.
pid_t fork_child() {
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) throw call_failed("fork", std::strerror(errno));
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(kExitEnvironment);  // it died before prctl
  }
  return child;
}

/// The second child.
[[noreturn]] void run_exchange(const AgentOptions& options, FileDescriptor from_child,
                               FileDescriptor to_agent) {
  prctl(PR_SET_NAME, "capstan-start");  // what ps and top call it, while it lives beside the child
  Answer answer;
  try {
    const auto hello = [&from_child, &answer]() -> std::optional<Hello> {
      pollfd ready{from_child.get(), POLLIN, 0};
      if (poll(&ready, 1, 0) <= 0) return std::nullopt;
      answer.program_came = true;
      return receive_value<Hello>(from_child.get(), Clock::now() + kHelloArrives, "this rank's program");
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
    _exit(kExitEnvironment);  // the agent is gone
  }
  to_agent.reset();
  if (answer.code == Code::ok && options.finalize) options.finalize();
  _exit(0);
}

/// Null where the system refuses: a ps then does not come back.
AgentLink::Kept persistent_memory() {
  try {
    return transport::PersistentMemory::create();
  } catch (const Error& error) {
    std::fprintf(stderr,
                 "capstan: a ps or coordinator of this rank would not come back when it is killed: %s\n",
                 error.what());
    return nullptr;
  }
}

class Agent {
 public:
  Agent(pid_t child, pid_t exchange, pid_t launcher, FileDescriptor to_child, FileDescriptor from_exchange,
        sigset_t mask, AgentLink::Kept kept, const AgentOptions& options)
      : child_(child),
        exchange_(exchange),
        launcher_(launcher),
        to_child_(std::move(to_child)),
        from_exchange_(std::move(from_exchange)),
        mask_(mask),
        kept_(std::move(kept)),
        run_dir_(options.run_dir),
        name_(options.name),
        has_launcher_(options.has_launcher) {}

  /// Returns in a child that was started again; never in the agent.
  AgentLink run() {
    pipe_handler_ = signal(SIGPIPE, SIG_IGN);  // a child that has died is found by waiting for it
    start();
    return supervise();
  }

 private:
  /// Until the exchange is done. It may take for ever; a signal, or the death of a child before the others
  /// know of it, ends the rank at once, and with it, through the launcher, the job.
  void start() {
    while (true) {
      end_if_dead(child_);
      if (told_to_end() || launcher_has_gone()) end_start(128 + SIGTERM);
      pollfd answered{from_exchange_.get(), POLLIN, 0};
      if (poll(&answered, 1, 50) > 0) break;
    }
    const Answer answer = answer_of_exchange();
    failed_start_ = answer.code != Code::ok;
    table_ = answer.table;
    if (!failed_start_) self_ = table_.members[static_cast<std::size_t>(table_.rank)];
    began_ = Clock::now();
    try {
      send_value(to_child_.get(), answer);
    } catch (const Error&) {
      // The child is gone; supervise() reports how it ended.
    }
    to_child_.reset();
    if (failed_start_ && !answer.program_came && !is_over_soon(child_)) {
      std::fprintf(stderr, "capstan: %s, pid %d, has not opened its network, and is killed: %s\n",
                   name_.c_str(), static_cast<int>(child_), answer.message.c_str());
      end_start(kExitLostRank);
    }
  }

  /// With its children, which are in the middle of it, and without what they leave.
  [[noreturn]] void end_start(int code) const {
    const auto until = Clock::now() + kDies;
    for (const pid_t pid : {child_, exchange_}) {
      if (pid > 0) kill(pid, SIGKILL);
    }
    for (const pid_t pid : {child_, exchange_}) {
      while (pid > 0 && waitpid(pid, nullptr, WNOHANG) == 0 && Clock::now() < until) usleep(1000);
    }
    remove_memory_left();
    _exit(code);
  }

  void remove_memory_left() const {
    int segments = remove_orphaned_memory(first_began_);
    for (const pid_t pid : {child_, exchange_}) {
      if (pid > 0) segments += remove_orphaned_segments(pid, first_began_);
    }
    if (segments == 0) return;
    std::fprintf(stderr, "capstan: removed the shared memory that UCX of %s had left behind: %d segment%s\n",
                 name_.c_str(), segments, segments == 1 ? "" : "s");
  }

  Answer answer_of_exchange() {
    try {
      auto answer = receive_value<Answer>(from_exchange_.get(), Clock::now() + std::chrono::seconds(10),
                                          "the exchange");
      from_exchange_.reset();
      end_exchange();
      return answer;
    } catch (const Error&) {
      while (true) {  // it closes the pipe without an answer by dying only
        end_if_dead(exchange_);
        usleep(1000);
      }
    }
  }

  /// However it ends: nothing depends on it any more. If it hangs, the child's wait for the table has a
  /// deadline.
  void end_exchange() {
    while (waitpid(exchange_, nullptr, WNOHANG) == 0) {
      end_if_dead(child_);
      if (told_to_end() || launcher_has_gone()) end_start(128 + SIGTERM);
      usleep(1000);
    }
    exchange_ = 0;
  }

  /// A child that is only late reads why the start has failed, and says so itself.
  static bool is_over_soon(pid_t pid) {
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

  void end_if_dead(pid_t pid) const {
    siginfo_t info{};
    if (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid != pid) {
      return;
    }
    if (info.si_code == CLD_EXITED) end_start(info.si_status != 0 ? info.si_status : kExitEnvironment);
    if (told_to_end()) end_start(128 + SIGTERM);
    say_killed_at_start(pid, info.si_status);
    end_start(kExitLostRank);
  }

  /// Returns true if the launcher's daemon has died: no other process would ever end this rank.
  bool launcher_has_gone() const { return has_launcher_ && getppid() != launcher_; }

  void say_killed_at_start(pid_t pid, int signal) const {
    std::fprintf(stderr, "capstan: %s, pid %d, was killed by signal %d (%s) before the job had begun\n",
                 name_.c_str(), static_cast<int>(pid), signal, strsignal(signal));
  }

  AgentLink supervise() {
    const sigset_t watched = watched_signals();
    bool ending = false;
    auto kill_at = Clock::time_point::max();
    while (true) {
      int status = 0;
      if (child_ > 0 && waitpid(child_, &status, WNOHANG) == child_) {
        ending = ending || told_to_end();
        const auto died = Clock::now();
        if (WIFSIGNALED(status)) remove_memory_left();  // may wait for other agents
        if (!starts_again(status, ending, died)) finish(status, ending);
        child_ = 0;
      }
      if (launcher_has_gone() && !ending) {
        ending = true;
        if (child_ > 0) kill(child_, SIGKILL);
      }
      if (child_ == 0 && ending) _exit(128 + SIGTERM);
      if (child_ == 0 && Clock::now() >= start_at_) {
        Heartbeat::rest();
        silent_ = false;
        child_ = fork_child();
        if (child_ == 0) return child_again();
        began_ = Clock::now();
      }
      if (Clock::now() >= kill_at) kill(child_, SIGKILL);
      kill_if_silent();
      const timespec tick = until_next_look();
      const int signal = sigtimedwait(&watched, nullptr, &tick);
      if (signal == SIGTERM || signal == SIGINT || signal == SIGHUP) {
        ending = true;
        kill_at = Clock::now() + kGrace;
      }
      if (signal > 0 && signal != SIGCHLD && child_ > 0) kill(child_, signal);
    }
  }

  /// A child that beats no more is stopped, or hangs. The others have given it up before.
  void kill_if_silent() {
    const auto now = Clock::now();
    if (now >= looked_ + kLongLook) excused_ = now;
    looked_ = now;
    const auto beat = Heartbeat::last();
    if (!beat || child_ <= 0 || now < std::max(beat->at, excused_) + beat->most_silence) return;
    std::fprintf(stderr,
                 "capstan: %s, pid %d, is stopped or hangs: no sign of life for %.1f s; it is killed "
                 "(its threads: %s)\n",
                 self_.name().c_str(), static_cast<int>(child_),
                 std::chrono::duration<double>(now - beat->at).count(), thread_states(child_).c_str());
    kill(child_, SIGKILL);
    Heartbeat::rest();
    silent_ = true;
  }

  timespec until_next_look() const {
    std::chrono::nanoseconds wait = std::chrono::milliseconds(500);
    if (child_ == 0) {
      wait =
          std::clamp<std::chrono::nanoseconds>(start_at_ - Clock::now(), std::chrono::nanoseconds(0), wait);
    }
    return {0, wait.count()};
  }

  static std::string end_of(int status) {
    if (!WIFSIGNALED(status)) return "ended with exit code " + std::to_string(WEXITSTATUS(status));
    return "was killed by signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) +
           ")";
  }

  /// Not by a signal that asks it to end.
  static bool was_killed(int status) {
    if (!WIFSIGNALED(status)) return false;
    const int signal = WTERMSIG(status);
    return signal != SIGTERM && signal != SIGINT && signal != SIGHUP;
  }

  /// Whether the coordinator has given the child up, which the agent has killed for its silence, and goes on
  /// without it or has ended the job. A worker is the exception: it begins with a new rank.
  bool was_given_up() const { return silent_ && self_.role != Role::worker; }

  /// Sets when the child is to be started again, and as whom.
  bool starts_again(int status, bool ending, Clock::time_point died) {
    const bool well = WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == kExitLostRank);
    if (well || ending || failed_start_ || started_again_ >= table_.restarts) return false;
    if (Heartbeat::was_the_last() || was_given_up()) return false;
    // A ps that has ended by itself would find in its memory what made it end. A spare that uses memory is a
    // ps.
    const bool returns =
        self_.role == Role::worker ||
        (one_fabric(self_.role) && WIFSIGNALED(status) && kept_ && kept_->used()) ||
        (self_.role == Role::coordinator && was_killed(status) && kept_ && table_.coordinator_may_return());
    if (!returns) return false;
    pause_ = died - began_ >= kLived ? kFirstPause : std::min(2 * pause_, kLastPause);
    start_at_ = died + pause_;
    ++started_again_;
    std::fprintf(stderr, "capstan: %s, pid %d, %s; it is started again in %.1f s (%d of at most %d times)\n",
                 self_.name().c_str(), static_cast<int>(child_), end_of(status).c_str(),
                 std::chrono::duration<double>(pause_).count(), started_again_, table_.restarts);
    // A ps stays who it is: what it knows of others, and they of it, goes on.
    if (self_.role == Role::worker) self_.rank = table_.rank_of_restart(self_.index, started_again_);
    return true;
  }

  /// In the new child: everything is as the first one found it.
  AgentLink child_again() {
    signal(SIGPIPE, pipe_handler_);
    sigprocmask(SIG_SETMASK, &mask_, nullptr);
    table_.rank = self_.rank;
    return AgentLink(std::move(table_), kept_, started_again_);
  }

  [[noreturn]] void finish(int status, bool ending) {
    if (self_.role == Role::coordinator && !run_dir_.empty()) {
      remove_run_file(run_dir_, self_.host, child_);
    }
    const bool by_signal = WIFSIGNALED(status);
    const int code = by_signal ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (code == 0 || ending || (failed_start_ && !by_signal)) _exit(code);
    if (failed_start_) {
      say_killed_at_start(child_, WTERMSIG(status));
      _exit(kExitLostRank);
    }
    const bool job_goes_on =
        self_.role == Role::worker || self_.role == Role::evaluator || self_.role == Role::spare;
    // It has said already that it lost the coordinator, whose agent ends the job.
    const bool lost_coordinator = !by_signal && code == kExitLostRank;
    if (by_signal || (job_goes_on && !lost_coordinator)) {
      std::fprintf(stderr, "capstan: %s, pid %d, %s%s\n", self_.name().c_str(), static_cast<int>(child_),
                   end_of(status).c_str(),
                   self_.role == Role::worker ? "; its work goes on elsewhere"
                   : job_goes_on              ? "; the job goes on without it"
                   : is_replaced(by_signal)   ? "; a spare is to take its place"
                   : coordinator_was_last()   ? "; it had ended the job, or could not go on with it"
                                              : "");
    }
    if (has_launcher_ && (job_goes_on || is_replaced(by_signal || lost_coordinator) || was_given_up()))
      _exit(0);
    if (self_.role == Role::ps) {
      // Only the coordinator's agent reports how the job ended if the launcher makes one code of all, and if
      // this ps was killed as the job was about to end, so that its new process found no coordinator.
      if (has_launcher_ && lost_coordinator && (started_again_ > 0 || launcher_waits_for_all())) _exit(0);
      // A ps that waits for a coordinator to come back has left its agent time enough to speak.
      if (by_signal || (lost_coordinator && !table_.coordinator_may_return())) pause_for_coordinator();
      _exit(by_signal ? kExitLostRank : code);
    }
    _exit(code);
  }

  bool coordinator_was_last() const {
    return self_.role == Role::coordinator && table_.coordinator_may_return() && Heartbeat::was_the_last();
  }

  /// Where the spare cannot, the coordinator ends the job. A ps that has lost its connection to the
  /// coordinator may be the only one: a spare has its place then, and the job goes on.
  bool is_replaced(bool lost) const {
    return lost && self_.role == Role::ps && table_.count(Role::spare) > 0;
  }

  /// The launcher ends the job when the coordinator's agent exits; a signal from it, or its own end, ends
  /// this pause.
  void pause_for_coordinator() const {
    if (!has_launcher_ || launcher_waits_for_all()) return;
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    const auto until = Clock::now() + kCoordinatorSpeaksFirst;
    const timespec tick{0, 100'000'000};
    while (!launcher_has_gone() && Clock::now() < until) {
      if (sigtimedwait(&ends, nullptr, &tick) > 0) return;
    }
  }

  pid_t child_;     // 0: it has died, and is to be started again
  pid_t exchange_;  // 0: it has ended
  pid_t launcher_;
  FileDescriptor to_child_;
  FileDescriptor from_exchange_;
  sigset_t mask_;  // of the program
  AgentLink::Kept kept_;
  std::string run_dir_;
  std::string name_;  // before there is a table
  bool has_launcher_;
  void (*pipe_handler_)(int) = SIG_DFL;
  bool failed_start_ = false;
  Table table_;
  Member self_;
  int started_again_ = 0;
  const std::chrono::system_clock::time_point first_began_ = std::chrono::system_clock::now();
  Clock::time_point began_{};  // the child
  Clock::time_point start_at_{};
  std::chrono::milliseconds pause_ = kFirstPause / 2;
  bool silent_ = false;  // the child was killed because it did not beat
  Clock::time_point looked_{};
  Clock::time_point excused_{};  // silence before does not count
};

}  // namespace

Table AgentLink::exchange(const Hello& hello, std::chrono::milliseconds timeout) {
  if (table_) return std::move(*table_);
  void (*const before)(int) = signal(SIGPIPE, SIG_IGN);
  try {
    send_value(to_agent_.get(), hello);
  } catch (const Error&) {
    // The exchange has ended already, and its answer says why.
  }
  signal(SIGPIPE, before);
  const auto deadline = Clock::now() + timeout + kExchangeSpeaksFirst;
  const auto answer = receive_value<Answer>(from_agent_.get(), deadline, "the other ranks");
  to_agent_.reset();
  from_agent_.reset();
  if (answer.code != Code::ok) throw Error(answer.code, answer.message);
  return answer.table;
}

AgentLink split_into_agent_and_child(const AgentOptions& options) {
  Heartbeat::share();
  Pipe up = open_pipe();      // child to exchange
  Pipe across = open_pipe();  // exchange to agent
  Pipe down = open_pipe();    // agent to child
  std::fflush(nullptr);       // or both processes would print the buffered output

  // The agent takes signals one by one in supervise(); blocking them first leaves no gap.
  const sigset_t blocked = watched_signals();
  sigset_t before;
  sigprocmask(SIG_BLOCK, &blocked, &before);

  AgentLink::Kept kept = persistent_memory();
  const pid_t launcher = getppid();
  const pid_t child = fork_child();
  if (child == 0) {
    sigprocmask(SIG_SETMASK, &before, nullptr);
    return {std::move(down.read_end), std::move(up.write_end), std::move(kept)};  // the other ends are closed
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
               std::move(kept), options)
      .run();
}

}  // namespace capstan::cluster
