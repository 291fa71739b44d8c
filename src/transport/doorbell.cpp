// doorbell.cpp -- unix(7), abstract sockets.
#include "transport/doorbell.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <random>

#include "capstan/error.hpp"

namespace capstan::transport {
namespace {

/// An abstract name starts with a zero byte and has no terminator: the length of the address delimits it.
std::pair<sockaddr_un, socklen_t> address_of(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof address.sun_path - 1);
  std::copy_n(name.begin(), length, address.sun_path + 1);
  return {address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length)};
}

}  // namespace

Doorbell::Doorbell() : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
  std::random_device random;
  name_ = fmt::format("capstan-{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
  const auto [address, length] = address_of(name_);
  if (!fd_ || bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    throw Error(Code::internal,
                std::string("cannot open a doorbell (a unix datagram socket): ") + std::strerror(errno));
  }
}

void Doorbell::clear() noexcept {
  char byte = 0;
  while (recv(fd_.get(), &byte, 1, 0) >= 0) {
  }
}

bool Doorbell::signal(const std::string& name) noexcept {
  if (name.empty()) return false;
  const auto [address, length] = address_of(name);
  // A full queue means that the doorbell is signaled already.
  return sendto(fd_.get(), "", 1, MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address), length) == 1 ||
         errno == EAGAIN || errno == EWOULDBLOCK;
}

}  // namespace capstan::transport
