// supervised_child.cpp -- fork, a pipe for the reports, and a signalfd for SIGTERM.
#include "launch/doctor/supervised_child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>

#include "capstan/error.hpp"
#include "cluster/bootstrap/socket.hpp"

namespace capstan::launch::doctor {
namespace {

using Descriptor = cluster::Socket;  // any file descriptor, closed once

/// Ignores errors: without the parent the reports are not needed.
void write_all(int to, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(to, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return;
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
}

/// Runs `work` in the child. SIGTERM stays blocked: a launcher sends it to both, and the parent handles it.
[[noreturn]] void run_child(int to_parent, const std::function<void(const SendReport&)>& work) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    work([to_parent](std::span<const std::byte> bytes) {
      const std::uint64_t size = bytes.size();
      write_all(to_parent, {reinterpret_cast<const std::byte*>(&size), sizeof size});
      write_all(to_parent, bytes);
    });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "capstan: %s\n", error.what());
  }
  std::fflush(nullptr);
  _exit(1);
}

/// Splits length-prefixed reports; drops a truncated last one.
std::vector<std::vector<std::byte>> parse_reports(std::span<const std::byte> bytes) {
  std::vector<std::vector<std::byte>> reports;
  std::uint64_t size = 0;
  while (bytes.size() >= sizeof size) {
    std::memcpy(&size, bytes.data(), sizeof size);
    bytes = bytes.subspan(sizeof size);
    if (bytes.size() < size) break;
    reports.emplace_back(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    bytes = bytes.subspan(size);
  }
  return reports;
}

/// Reads until the child closes its end (returns false) or SIGTERM arrives (returns true).
bool read_until_terminated(int from_child, int signals, std::vector<std::byte>& bytes) {
  std::array<std::byte, 4096> block{};
  for (;;) {
    std::array<pollfd, 2> fds{{{from_child, POLLIN, 0}, {signals, POLLIN, 0}}};
    if (poll(fds.data(), fds.size(), -1) < 0) continue;  // EINTR
    if ((fds[0].revents & (POLLIN | POLLHUP)) != 0) {
      const ssize_t got = ::read(from_child, block.data(), block.size());
      if (got == 0) return false;
      if (got > 0) bytes.insert(bytes.end(), block.begin(), block.begin() + got);
    } else if ((fds[1].revents & POLLIN) != 0) {
      return true;
    }
  }
}

bool is_pending(int signals) {
  pollfd signal{signals, POLLIN, 0};
  return poll(&signal, 1, 0) == 1;
}

}  // namespace

ChildResult run_in_child(const std::function<void(const SendReport&)>& work) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw call_failed("pipe2", std::strerror(errno));
  const Descriptor from_child(ends[0]);
  Descriptor to_parent(ends[1]);
  sigset_t term;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  sigprocmask(SIG_BLOCK, &term, nullptr);
  const Descriptor signals(signalfd(-1, &term, SFD_CLOEXEC));
  if (!signals) throw call_failed("signalfd", std::strerror(errno));
  std::fflush(nullptr);  // or both processes would print the buffered output
  const pid_t child = fork();
  if (child < 0) throw call_failed("fork", std::strerror(errno));
  if (child == 0) run_child(to_parent.get(), work);
  to_parent.reset();

  ChildResult result;
  std::vector<std::byte> bytes;
  result.terminated = read_until_terminated(from_child.get(), signals.get(), bytes);
  result.reports = parse_reports(bytes);
  int status = SIGKILL;
  if (result.terminated) {
    // No waitpid: the launcher may send SIGKILL within milliseconds, and the caller must report first.
    (void)kill(child, SIGKILL);
  } else {
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    // When a launcher ends the job, MPI may end the child first. A pending SIGTERM shows that this happened.
    result.terminated = is_pending(signals.get());
  }
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace capstan::launch::doctor
