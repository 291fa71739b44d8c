// stacks.cpp -- interrupts one thread after the other with a signal whose handler prints the stack.
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
constexpr int kMaxFrames = 64;
constexpr std::chrono::seconds kHandlerTimeout{1};

std::atomic<int> out{-1};  // descriptor to which the interrupted thread writes
std::atomic<bool> written{false};

/// Signal handler. backtrace() does not allocate in it, because write_stacks() has called backtrace() before.
void write_own_stack(int) {
  const int before = errno;
  void* frames[kMaxFrames];
  backtrace_symbols_fd(frames, backtrace(frames, kMaxFrames), out.load());
  written = true;
  errno = before;
}

void write_text(int descriptor, const std::string& text) {
  // A closed stderr is not an error.
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
  written = false;
  if (::syscall(SYS_tgkill, ::getpid(), thread, kSignal) != 0) return;  // the thread has ended
  const auto end = std::chrono::steady_clock::now() + kHandlerTimeout;
  while (!written && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  if (!written) write_text(descriptor, "  the thread did not handle the signal\n");
}

}  // namespace

void write_stacks(int descriptor) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  void* first[1];
  (void)backtrace(first, 1);  // loads libgcc now, since a signal handler may not allocate
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = &write_own_stack;
  action.sa_flags = SA_RESTART;
  if (::sigaction(kSignal, &action, &before) != 0) return;
  out = descriptor;
  write_text(descriptor, fmt::format("==== Stacks of {} ====\n", log::rank_tag()));
  std::error_code ignored;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
    write_stack_of(std::stol(task.path().filename().string()), name_of(task.path()), descriptor);
  }
  write_text(descriptor, fmt::format("==== End of stacks of {} ====\n", log::rank_tag()));
  // The signal's default action is to ignore it, so a thread that handles it late does no harm.
  (void)::sigaction(kSignal, &before, nullptr);
}

void write_stacks() { write_stacks(STDERR_FILENO); }

}  // namespace capstan
