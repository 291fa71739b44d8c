// host_names.cpp -- getaddrinfo and connect, each with a limit.
#include "launch/doctor/host_names.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "capstan/error.hpp"
#include "cluster/bootstrap/socket.hpp"
#include "cluster/runtime.hpp"
#include "launch/doctor/time_limit.hpp"

namespace capstan::launch::doctor {
namespace {

constexpr std::chrono::seconds kResolverLimit{4};
constexpr int kConnectMilliseconds = 2000;
constexpr std::size_t kNamedHosts = 3;

/// IPv4 addresses of a name, each once; none when it has none.
std::vector<std::string> addresses_of(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  std::vector<std::string> addresses;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return addresses;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found, freeaddrinfo);
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    std::array<char, INET_ADDRSTRLEN> text{};
    const auto* address = reinterpret_cast<const sockaddr_in*>(at->ai_addr);
    inet_ntop(AF_INET, &address->sin_addr, text.data(), text.size());
    if (std::find(addresses.begin(), addresses.end(), text.data()) == addresses.end())
      addresses.emplace_back(text.data());
  }
  return addresses;
}

/// "" when a connection came about, else why not.
std::string try_to_connect(const std::string& address, int port) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  if (inet_pton(AF_INET, address.c_str(), &to.sin_addr) != 1) return address + " is no address";
  const cluster::Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return fmt::format("socket: {}", std::strerror(errno));
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) return {};
  if (errno != EINPROGRESS) return fmt::format("{}, port {}: {}", address, port, std::strerror(errno));
  pollfd fd{socket.get(), POLLOUT, 0};
  if (poll(&fd, 1, kConnectMilliseconds) <= 0)
    return fmt::format("no answer from {}, port {}, within 2 s", address, port);
  int error = 0;
  socklen_t length = sizeof error;
  (void)getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  return error == 0 ? std::string() : fmt::format("{}, port {}: {}", address, port, std::strerror(error));
}

}  // namespace

Doorway::Doorway() {
  cluster::Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t length = sizeof any;
  if (!socket || bind(socket.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0 ||
      listen(socket.get(), 64) != 0 ||
      getsockname(socket.get(), reinterpret_cast<sockaddr*>(&any), &length) != 0) {
    throw call_failed("socket, bind, listen", std::strerror(errno));
  }
  port_ = ntohs(any.sin_port);
  socket_ = socket.release();
}

Doorway::~Doorway() { (void)close(socket_); }

Knock knock(const std::string& from, const HostDoor& door) {
  Knock knock{from, door.host};
  knock.by_address = try_to_connect(door.address, door.port);
  const auto addresses =
      within<std::vector<std::string>>(kResolverLimit, [host = door.host] { return addresses_of(host); });
  if (!addresses) {
    knock.by_name = fmt::format("the name {} is not resolved within {} s", door.host, kResolverLimit.count());
  } else if (addresses->empty()) {
    knock.by_name = fmt::format("the name {} is unknown", door.host);
  } else {
    knock.by_name = try_to_connect(addresses->front(), door.port);
  }
  return knock;
}

Finding judge_host_name(const std::string& host, const std::vector<std::string>& addresses) {
  if (addresses.empty()) {
    Finding finding = warn(fmt::format("this host's own name {} has no address", host),
                           "an entry in /etc/hosts or the name server: launchers go by names");
    finding.alike = "no address";
    return finding;
  }
  const std::string seen = fmt::format("{} is {}", host, fmt::join(addresses, ", "));
  const bool loopback = std::all_of(addresses.begin(), addresses.end(),
                                    [](const std::string& a) { return a.starts_with("127."); });
  Finding finding = pass(loopback ? seen + ", which no other host can use" : seen);
  finding.alike = loopback ? "loopback" : "address";
  return finding;
}

Finding judge_knocks(const std::vector<Knock>& knocks) {
  if (knocks.empty()) return skip("one host");
  std::vector<std::string> unreached;
  std::vector<std::string> unnamed;
  for (const Knock& knock : knocks) {
    if (knock.by_name.empty()) continue;
    const bool reached = knock.by_address.empty();
    (reached ? unnamed : unreached)
        .push_back(fmt::format("{} -> {}: {}{}", knock.from, knock.to, knock.by_name,
                               reached ? ", though its address answers" : "; " + knock.by_address));
  }
  const auto told = [&](const std::vector<std::string>& failures) {
    const auto end = failures.begin() + static_cast<std::ptrdiff_t>(std::min(failures.size(), kNamedHosts));
    return fmt::format("{} of {} connections between hosts: {}", failures.size(), knocks.size(),
                       fmt::join(failures.begin(), end, "; "));
  };
  if (!unreached.empty()) {
    return fail(told(unreached),
                "open the firewall between compute nodes, or set UCX_TCP_PORT_RANGE to the ports that "
                "it leaves open");
  }
  if (!unnamed.empty()) return warn(told(unnamed), "names of all hosts in /etc/hosts or the name server");
  return pass(fmt::format("{} connections between hosts, to a port that the system chose", knocks.size()));
}

Finding check_host_name(const Request&) {
  const std::string host = cluster::host_name();
  return judge_host_name(host, addresses_of(host));
}

}  // namespace capstan::launch::doctor
