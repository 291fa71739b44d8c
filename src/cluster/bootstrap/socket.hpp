// socket.hpp -- a TCP socket that closes itself, and addresses as text.
#pragma once

#include <cstdint>
#include <string>

#include "base/file_descriptor.hpp"

struct sockaddr_in;

namespace capstan::cluster {

using Socket = FileDescriptor;

/// Returns "10.0.0.1:4711".
std::string to_string(const sockaddr_in& address);
/// Parses "10.0.0.1:4711" or "node17", whose port is 0. Resolves names. Throws Error: invalid_argument, or
/// unavailable for a name that cannot be resolved now.
sockaddr_in address_in(const std::string& text);
/// Returns the address of the first network interface that is up and not loopback; "127.0.0.1" if there is
/// none.
std::string address_of_this_host();

}  // namespace capstan::cluster
