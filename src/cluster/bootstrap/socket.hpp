// socket.hpp -- a TCP socket that is closed once, and addresses as text.
#pragma once

#include <cstdint>
#include <string>

#include "base/file_descriptor.hpp"

struct sockaddr_in;

namespace capstan::cluster {

using Socket = FileDescriptor;

/// "10.0.0.1:4711"
std::string to_string(const sockaddr_in& address);
/// Of "10.0.0.1:4711" or "node17"; the port is 0 where none is given. Asks the system's resolver for names.
/// Throws Error: invalid_argument, or unavailable for a name that nobody knows now.
sockaddr_in address_in(const std::string& text);
/// Of the first network interface that is up and is not loopback; loopback's own when there is none.
std::string address_of_this_host();

}  // namespace capstan::cluster
