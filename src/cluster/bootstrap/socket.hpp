// socket.hpp -- a TCP socket that is closed once, and addresses as text.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <string>

#include "base/handle.hpp"

struct sockaddr_in;

namespace capstan::cluster {

struct SocketTraits {
  using type = int;
  static type none() noexcept { return -1; }
  static void free(type h) noexcept { (void)close(h); }  // on Linux it is closed, whatever close says
};
class Socket : public Handle<SocketTraits> {
 public:
  Socket() noexcept : Handle(-1) {}
  explicit Socket(int fd) noexcept : Handle(fd) {}
};

/// "10.0.0.1:4711"
std::string to_string(const sockaddr_in& address);
/// Of "10.0.0.1:4711" or "node17"; the port is 0 where none is given. Asks the system's resolver for names.
/// Throws Error: invalid_argument, or unavailable for a name that nobody knows now.
sockaddr_in address_in(const std::string& text);
/// Of the first network interface that is up and is not loopback; loopback's own when there is none.
std::string address_of_this_host();

}  // namespace capstan::cluster
