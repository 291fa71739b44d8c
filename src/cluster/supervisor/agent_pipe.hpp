// agent_pipe.hpp -- sends values through a pipe between the processes of one rank.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/file_descriptor.hpp"
#include "capstan/serialize.hpp"

namespace capstan::cluster {

struct Pipe {
  FileDescriptor read_end;
  FileDescriptor write_end;
};

/// Throws Error.
Pipe open_pipe();

void write_all(int fd, const void* data, std::size_t size);
/// Throws Error(deadline_exceeded), or Error(unavailable) if the other end, `whom`, is closed.
void read_all(int fd, void* data, std::size_t size, std::chrono::steady_clock::time_point deadline,
              const char* whom);

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

}  // namespace capstan::cluster
