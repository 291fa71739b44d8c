// command_output.cpp -- posix_spawn and a pipe, with one deadline for both.
#include "base/command_output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>
#include <thread>

extern char** environ;

namespace capstan {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPollInterval{5};
constexpr std::size_t kMaxOutputBytes = 1 << 20;

class FileActions {
 public:
  FileActions() { posix_spawn_file_actions_init(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

class Attributes {
 public:
  /// Puts the child into its own process group and clears its signal mask.
  Attributes() {
    posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  ~Attributes() { posix_spawnattr_destroy(&attributes_); }
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_{};
};

std::vector<std::string> changed_environment(const std::vector<std::string>& changes) {
  const auto name_of = [](std::string_view entry) { return entry.substr(0, entry.find('=')); };
  std::vector<std::string> entries;
  for (char** at = environ; *at != nullptr; ++at) {
    const bool changed = std::any_of(changes.begin(), changes.end(), [&](const std::string& change) {
      return name_of(change) == name_of(*at);
    });
    if (!changed) entries.emplace_back(*at);
  }
  for (const std::string& change : changes) {
    if (change.find('=') != std::string::npos) entries.push_back(change);
  }
  return entries;
}

std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

/// Returns 0 on failure. Uses posix_spawn, because fork would copy the page tables of registered memory.
pid_t start(const std::vector<std::string>& words, int output, StderrMode stderr_mode,
            const std::vector<std::string>& changes) {
  const std::vector<std::string> environment = changed_environment(changes);
  FileActions actions;
  posix_spawn_file_actions_addopen(actions.get(), STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(actions.get(), output, STDOUT_FILENO);
  if (stderr_mode == StderrMode::captured) {
    posix_spawn_file_actions_adddup2(actions.get(), output, STDERR_FILENO);
  } else {
    posix_spawn_file_actions_addopen(actions.get(), STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  }
  const Attributes attributes;
  pid_t child = 0;
  const int error = posix_spawnp(&child, words.front().c_str(), actions.get(), attributes.get(),
                                 pointers_to(words).data(), pointers_to(environment).data());
  return error == 0 ? child : 0;
}

/// Reads until end of file; returns false if the deadline passes first.
bool read_all(int from, Clock::time_point deadline, std::string& text) {
  std::array<char, 4096> buffer{};
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd readable{from, POLLIN, 0};
    const int ready = poll(&readable, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready == 0) return false;
    if (ready < 0 && errno == EINTR) continue;
    const ssize_t size = ::read(from, buffer.data(), buffer.size());
    if (size > 0) {
      if (text.size() < kMaxOutputBytes) text.append(buffer.data(), static_cast<std::size_t>(size));
    } else if (size == 0 || errno != EINTR) {
      return true;
    }
  }
}

std::optional<int> exit_code_of(pid_t child, Clock::time_point deadline) {
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (Clock::now() >= deadline) return std::nullopt;
    std::this_thread::sleep_for(kPollInterval);
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

std::optional<CommandOutput> command_output(const std::vector<std::string>& words,
                                            std::chrono::milliseconds limit, StderrMode stderr_mode,
                                            const std::vector<std::string>& changes) {
  const auto deadline = Clock::now() + limit;
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  const pid_t child = start(words, ends[1], stderr_mode, changes);
  close(ends[1]);
  CommandOutput output;
  std::optional<int> code;
  if (child > 0) {
    if (read_all(ends[0], deadline, output.text)) code = exit_code_of(child, deadline);
    if (!code) {
      kill(-child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
  }
  close(ends[0]);
  if (!code) return std::nullopt;
  output.exit_code = *code;
  return output;
}

}  // namespace capstan
