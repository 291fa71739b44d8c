// host_names.cpp -- getaddrinfo and connect, with time limits.
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
constexpr std::size_t kMaxNamedAttempts = 3;

/// Distinct IPv4 addresses of `host`; empty if it has none.
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

/// Returns "" if the connection succeeds, else the reason.
std::string try_to_connect(const std::string& address, int port) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  if (inet_pton(AF_INET, address.c_str(), &to.sin_addr) != 1) return address + " is not an IPv4 address";
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

Listener::Listener() {
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

Listener::~Listener() { (void)close(socket_); }

ConnectionAttempt attempt_connection(const std::string& from, const HostEndpoint& endpoint) {
  ConnectionAttempt attempt{from, endpoint.host};
  attempt.address_error = try_to_connect(endpoint.address, endpoint.port);
  const auto addresses = run_with_time_limit<std::vector<std::string>>(
      kResolverLimit, [host = endpoint.host] { return addresses_of(host); });
  if (!addresses) {
    attempt.name_error =
        fmt::format("the name {} was not resolved within {} s", endpoint.host, kResolverLimit.count());
  } else if (addresses->empty()) {
    attempt.name_error = fmt::format("the name {} is unknown", endpoint.host);
  } else {
    attempt.name_error = try_to_connect(addresses->front(), endpoint.port);
  }
  return attempt;
}

Finding judge_host_name(const std::string& host, const std::vector<std::string>& addresses) {
  if (addresses.empty()) {
    Finding finding = warn(fmt::format("the name of this host, {}, has no address", host),
                           "add it to /etc/hosts or the name server: launchers use names");
    finding.group_key = "no address";
    return finding;
  }
  const std::string observed = fmt::format("{} is {}", host, fmt::join(addresses, ", "));
  const bool loopback = std::all_of(addresses.begin(), addresses.end(),
                                    [](const std::string& a) { return a.starts_with("127."); });
  Finding finding = pass(loopback ? observed + ", which no other host can reach" : observed);
  finding.group_key = loopback ? "loopback" : "address";
  return finding;
}

Finding judge_connections(const std::vector<ConnectionAttempt>& attempts) {
  if (attempts.empty()) return skip("one host");
  std::vector<std::string> unreached;
  std::vector<std::string> unnamed;
  for (const ConnectionAttempt& attempt : attempts) {
    if (attempt.name_error.empty()) continue;
    const bool reached = attempt.address_error.empty();
    (reached ? unnamed : unreached)
        .push_back(fmt::format("{} -> {}: {}{}", attempt.from, attempt.to, attempt.name_error,
                               reached ? ", but its address is reachable" : "; " + attempt.address_error));
  }
  const auto describe = [&](const std::vector<std::string>& failures) {
    const auto end =
        failures.begin() + static_cast<std::ptrdiff_t>(std::min(failures.size(), kMaxNamedAttempts));
    return fmt::format("{} of {} connections between hosts failed: {}", failures.size(), attempts.size(),
                       fmt::join(failures.begin(), end, "; "));
  };
  if (!unreached.empty()) {
    return fail(describe(unreached),
                "open the firewall between compute nodes, or set UCX_TCP_PORT_RANGE to its open ports");
  }
  if (!unnamed.empty()) return warn(describe(unnamed), "add all hosts to /etc/hosts or the name server");
  return pass(
      fmt::format("{} connections between hosts succeeded, to ports that the system chose", attempts.size()));
}

Finding check_host_name(const Request&) {
  const std::string host = cluster::host_name();
  return judge_host_name(host, addresses_of(host));
}

}  // namespace capstan::launch::doctor
