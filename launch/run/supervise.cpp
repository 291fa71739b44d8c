// supervise.cpp -- forks the launcher, waits with sigtimedwait, and reaps orphans as a subreaper.
#include "launch/run/supervise.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "capstan/error.hpp"
#include "launch/exit_codes.hpp"

namespace capstan::launch::run {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPollInterval{500};
constexpr std::chrono::milliseconds kReapInterval{20};
constexpr int kNotStarted = 127;

bool is_termination_signal(int signal) { return signal == SIGTERM || signal == SIGINT || signal == SIGHUP; }

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) sigaddset(&set, signal);
  return set;
}

/// Blocks the watched signals and returns them one by one; the destructor restores the signal mask.
class WatchedSignals {
 public:
  WatchedSignals() : watched_(watched_signals()) { sigprocmask(SIG_BLOCK, &watched_, &before_); }
  WatchedSignals(const WatchedSignals&) = delete;
  WatchedSignals& operator=(const WatchedSignals&) = delete;
  ~WatchedSignals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }

  const sigset_t& before() const { return before_; }
  /// The next pending signal; 0 if none arrives in time.
  int next(std::chrono::milliseconds within) const {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(within);
    const timespec tick{seconds.count(), std::chrono::nanoseconds(within - seconds).count()};
    return std::max(0, sigtimedwait(&watched_, nullptr, &tick));
  }

 private:
  sigset_t watched_;
  sigset_t before_{};
};

/// Replaces the child with the launcher. It gets its own process group, else Ctrl-C would reach it twice:
/// from the terminal and forwarded. Its input is /dev/null, since reading the terminal would stop the group.
[[noreturn]] void exec_launcher(const Plan& plan, const sigset_t& mask, pid_t parent, int failure) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(kNotStarted);  // the parent died before prctl
  if (isatty(STDIN_FILENO) != 0) {
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  }
  for (const auto& [name, value] : plan.variables) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> words;
  for (const std::string& word : plan.command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  execvp(words.front(), words.data());
  const int reason = errno;
  if (write(failure, &reason, sizeof reason) < 0) _exit(kNotStarted);
  _exit(kNotStarted);
}

pid_t start(const Plan& plan, const sigset_t& mask) {
  std::array<int, 2> failure{};
  if (pipe2(failure.data(), O_CLOEXEC) != 0) throw call_failed("pipe2", std::strerror(errno));
  std::fflush(nullptr);
  const pid_t self = getpid();
  const pid_t child = fork();
  if (child < 0) throw call_failed("fork", std::strerror(errno));
  if (child == 0) exec_launcher(plan, mask, self, failure[1]);
  close(failure[1]);
  setpgid(child, child);  // both sides set it, so the order does not matter
  int reason = 0;
  const bool failed = read(failure[0], &reason, sizeof reason) == static_cast<ssize_t>(sizeof reason);
  close(failure[0]);
  if (!failed) return child;
  waitpid(child, nullptr, 0);
  throw Error(reason == EACCES ? Code::permission_denied : Code::not_found,
              fmt::format("cannot start {}: {}", plan.command.front(), std::strerror(reason)));
}

/// The running launcher.
class LauncherProcess {
 public:
  LauncherProcess(pid_t pid, const Limits& limits) : pid_(pid), limits_(limits), began_(Clock::now()) {}

  int wait(const WatchedSignals& signals) {
    int status = 0;
    while (waitpid(pid_, &status, WNOHANG) == 0) {
      check_deadlines();
      if (const int signal = signals.next(time_to_next_deadline()); signal > 0 && signal != SIGCHLD)
        forward(signal);
    }
    if (timed_out_) return static_cast<int>(Exit::timed_out);
    const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (interrupted_) {
      return limits_.requeues && code == static_cast<int>(Exit::requeue)
                 ? code
                 : static_cast<int>(Exit::interrupted);
    }
    // mpiexec of MPICH may exit with 0 if a signal arrives before the ranks have started.
    return code == 0 && termination_signal_ != 0 ? 128 + termination_signal_ : code;
  }

 private:
  void check_deadlines() {
    const auto now = Clock::now();
    if (limits_.timeout && !timed_out_ && now >= began_ + *limits_.timeout) {
      timed_out_ = true;
      std::fprintf(stderr, "capstan run: --timeout of %.10g s expired, sending SIGTERM to the job\n",
                   std::chrono::duration<double>(*limits_.timeout).count());
      kill(pid_, SIGTERM);
      kill_at_ = std::min(kill_at_, now + limits_.kill_after_timeout);
    }
    if (now >= kill_at_ && !killed_) {
      killed_ = true;
      std::fprintf(stderr, "capstan run: the job did not end in time, sending SIGKILL\n");
    }
    if (killed_) kill(-pid_, SIGKILL);
  }

  void forward(int signal) {
    if (signal == SIGINT && !std::exchange(interrupted_, true) && limits_.save_signal != 0) {
      std::fprintf(
          stderr,
          "capstan run: saving a checkpoint before the exit; press Ctrl-C again to stop without it\n");
      kill(pid_, limits_.save_signal);
      return;
    }
    kill(pid_, signal);
    if (!is_termination_signal(signal)) return;
    if (termination_signal_ == 0) termination_signal_ = signal;
    kill_at_ = std::min(kill_at_, Clock::now() + limits_.kill_after_signal);
  }

  std::chrono::milliseconds time_to_next_deadline() const {
    auto next = kill_at_;
    if (limits_.timeout && !timed_out_) next = std::min(next, began_ + *limits_.timeout);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now());
    return std::clamp(left, std::chrono::milliseconds(1), kPollInterval);
  }

  pid_t pid_;
  Limits limits_;
  Clock::time_point began_;
  Clock::time_point kill_at_ = Clock::time_point::max();
  int termination_signal_ = 0;  // first SIGTERM, SIGINT or SIGHUP that was forwarded
  bool interrupted_ = false;    // by SIGINT
  bool timed_out_ = false;
  bool killed_ = false;
};

/// Children of this process: as a subreaper it inherits the orphans of the launcher.
std::vector<pid_t> child_pids() {
  std::vector<pid_t> found;
  DIR* proc = opendir("/proc");
  if (proc == nullptr) return found;
  while (const dirent* entry = readdir(proc)) {
    const pid_t pid = std::atoi(entry->d_name);
    if (pid <= 0) continue;
    std::ifstream file(fmt::format("/proc/{}/stat", pid));
    std::string text;
    std::getline(file, text, '\0');
    const auto after_name = text.rfind(')');  // the name may contain any character
    if (after_name == std::string::npos) continue;
    char state = 0;
    int parent = 0;
    if (std::sscanf(text.c_str() + after_name + 1, " %c %d", &state, &parent) == 2 && parent == getpid())
      found.push_back(pid);
  }
  closedir(proc);
  return found;
}

/// Returns the number of killed processes. Children of a killed child are inherited and killed in turn.
int reap_orphans(std::chrono::milliseconds timeout) {
  const auto begin = Clock::now();
  std::vector<pid_t> killed;
  while (true) {
    pid_t ended = 0;
    while ((ended = waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    if (ended < 0 && errno == ECHILD) return static_cast<int>(killed.size());
    if (Clock::now() >= begin + timeout) {
      for (const pid_t pid : child_pids()) {
        kill(pid, SIGKILL);
        if (std::find(killed.begin(), killed.end(), pid) == killed.end()) killed.push_back(pid);
      }
    }
    std::this_thread::sleep_for(kReapInterval);
  }
}

}  // namespace

Outcome supervise(const Plan& plan, const Limits& limits) {
  const auto begin = Clock::now();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const WatchedSignals signals;
  const pid_t child = start(plan, signals.before());
  Outcome outcome;
  outcome.exit_code = LauncherProcess(child, limits).wait(signals);
  // Kills the processes that the launcher left in its process group, without another grace period.
  if (outcome.exit_code == static_cast<int>(Exit::timed_out)) kill(-child, SIGKILL);
  outcome.killed_orphans = reap_orphans(limits.orphan_timeout);
  outcome.took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
  return outcome;
}

}  // namespace capstan::launch::run
