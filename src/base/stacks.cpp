// stacks.cpp -- a signal to each thread, one after the other, whose handler walks the stack.
#include "base/stacks.hpp"

#include <execinfo.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

#include "base/log.hpp"

namespace capstan {
namespace {

constexpr int kSignal = SIGURG;
constexpr int kMostFrames = 64;
constexpr std::chrono::seconds kAnswerWithin{1};

std::atomic<int> out{-1};  // where the interrupted thread writes
std::atomic<bool> answered{false};

/// In a signal handler: nothing here takes memory, as backtrace has been called before.
void write_own_stack(int) {
  const int before = errno;
  void* frames[kMostFrames];
  backtrace_symbols_fd(frames, backtrace(frames, kMostFrames), out.load());
  answered = true;
  errno = before;
}

void write_text(int descriptor, const std::string& text) {
  // A stderr that is gone is no reason to fail.
  (void)!::write(descriptor, text.data(), text.size());
}

std::string name_of(const std::filesystem::path& task) {
  std::string name;
  std::ifstream file(task / "comm");
  std::getline(file, name);
  return name;
}

void write_stack_of(long thread, const std::string& name, int descriptor) {
  write_text(descriptor, fmt::format("thread {} ({}):\n", thread, name));
  answered = false;
  if (::syscall(SYS_tgkill, ::getpid(), thread, kSignal) != 0) return;  // it has ended
  const auto end = std::chrono::steady_clock::now() + kAnswerWithin;
  while (!answered && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  if (!answered) write_text(descriptor, "  does not answer\n");
}

}  // namespace

void write_stacks(int descriptor) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  void* first[1];
  (void)backtrace(first, 1);  // loads what it needs, which a signal handler may not
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = &write_own_stack;
  action.sa_flags = SA_RESTART;
  if (::sigaction(kSignal, &action, &before) != 0) return;
  out = descriptor;
  write_text(descriptor, fmt::format("==== Stacks of {} ====\n", log::rank_tag()));
  std::error_code gone;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", gone)) {
    write_stack_of(std::stol(task.path().filename().string()), name_of(task.path()), descriptor);
  }
  write_text(descriptor, fmt::format("==== End of stacks of {} ====\n", log::rank_tag()));
  // A late answer finds the signal ignored, as it was.
  (void)::sigaction(kSignal, &before, nullptr);
}

void write_stacks() { write_stacks(STDERR_FILENO); }

}  // namespace capstan
