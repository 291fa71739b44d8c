// host_names.hpp -- checks that hosts resolve their names and connect to each other.
#pragma once

#include <string>
#include <vector>

#include "launch/doctor/finding.hpp"
#include "launch/doctor/request.hpp"

namespace capstan::launch::doctor {

/// Address of a listening host. Serialized and sent to the other hosts.
struct HostEndpoint {
  std::string host;
  std::string address;  ///< IPv4 address of its first interface
  int port = 0;         ///< TCP port of its listener; 0: none
};

/// Result of connecting to the listener of another host.
struct ConnectionAttempt {
  std::string from;
  std::string to;
  std::string name_error = {};     ///< why connecting by name failed; "" on success
  std::string address_error = {};  ///< why connecting by address failed; "" on success
};

/// Listens on all interfaces on a port that the system chooses, until destruction. Throws Error(internal).
class Listener {
 public:
  Listener();
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  int port() const noexcept { return port_; }

 private:
  int socket_ = -1;
  int port_ = 0;
};

/// Connects by address, then by name. Time limits: 4 s for the resolver, 2 s for each connection.
ConnectionAttempt attempt_connection(const std::string& from, const HostEndpoint& endpoint);

Finding check_host_name(const Request& request);
/// `addresses`: IPv4 addresses of `host` from the resolver.
Finding judge_host_name(const std::string& host, const std::vector<std::string>& addresses);
/// Fails if a host is reachable neither by name nor by address. Warns if only the name fails, since ranks
/// get each other's addresses from UCX.
Finding judge_connections(const std::vector<ConnectionAttempt>& attempts);

}  // namespace capstan::launch::doctor
