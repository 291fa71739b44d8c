// agent_pipe.cpp -- complete reads and writes, with a deadline.
#include "cluster/supervisor/agent_pipe.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "capstan/error.hpp"

namespace capstan::cluster {

Pipe open_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw call_failed("pipe2", std::strerror(errno));
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

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
                      " longer than the start timeout: not every rank has started (see --start-timeout)");
    }
    const ssize_t got = ::read(fd, at, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw Error(Code::unavailable, std::string(whom) + " ended before the exchange was done");
    at += got;
    size -= static_cast<std::size_t>(got);
  }
}

}  // namespace capstan::cluster
