// time_limit.cpp -- posix_spawn, a pipe with a deadline, and SIGKILL.
#include "launch/doctor/time_limit.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "capstan/error.hpp"
#include "cluster/socket.hpp"

namespace capstan::launch::doctor {
namespace {

using Clock = std::chrono::steady_clock;
using Descriptor = cluster::Socket;  // any file descriptor, closed once

constexpr std::size_t kMostOutput = 1 << 20;

std::vector<std::string> changed_environment(const std::vector<std::string>& changes) {
  const auto name_of = [](std::string_view entry) { return entry.substr(0, entry.find('=')); };
  std::vector<std::string> entries;
  for (char** at = environ; *at != nullptr; ++at) {
    bool changed = false;
    for (const std::string& change : changes) changed = changed || name_of(change) == name_of(*at);
    if (!changed) entries.emplace_back(*at);
  }
  for (const std::string& change : changes) {
    if (change.find('=') != std::string::npos) entries.push_back(change);
  }
  return entries;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

int milliseconds_until(Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return left > 0 ? static_cast<int>(left) : 0;
}

/// Until the other end is closed; false when that takes too long.
bool read_to_end(int from, std::string& output, Clock::time_point deadline) {
  std::array<char, 4096> block{};
  for (;;) {
    pollfd fd{from, POLLIN, 0};
    const int ready = poll(&fd, 1, milliseconds_until(deadline));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t got = ::read(from, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    if (output.size() < kMostOutput) output.append(block.data(), static_cast<std::size_t>(got));
  }
}

/// The wait status, or nothing when the process has not ended by then.
std::optional<int> wait_for(pid_t child, Clock::time_point deadline) {
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) return status;
    if (ended < 0 && errno != EINTR) return 0;
    if (Clock::now() >= deadline) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace

ProgramEnd run_program(const std::vector<std::string>& words, const std::vector<std::string>& changes,
                       std::chrono::milliseconds limit) {
  const Clock::time_point deadline = Clock::now() + limit;
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw call_failed("pipe2", std::strerror(errno));
  const Descriptor from_child(ends[0]);
  Descriptor to_parent(ends[1]);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  std::vector<std::string> arguments = words;
  std::vector<std::string> environment = changed_environment(changes);
  pid_t child = -1;
  const int error = posix_spawnp(&child, words.front().c_str(), &actions, nullptr,
                                 pointers_to(arguments).data(), pointers_to(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  ProgramEnd end;
  if (error == ENOENT || error == EACCES) {
    end.exit_code = 127;
    return end;
  }
  if (error != 0) throw call_failed("posix_spawnp", std::strerror(error));
  to_parent.reset();

  std::optional<int> status;
  if (read_to_end(from_child.get(), end.output, deadline)) status = wait_for(child, deadline);
  if (!status) {
    end.timed_out = true;
    (void)kill(child, SIGKILL);  // it may have ended just now
    status = wait_for(child, Clock::now() + std::chrono::seconds(1));
  }
  if (status) end.exit_code = WIFEXITED(*status) ? WEXITSTATUS(*status) : 128 + WTERMSIG(*status);
  return end;
}

}  // namespace capstan::launch::doctor
