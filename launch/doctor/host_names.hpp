// host_names.hpp -- whether this host finds its own name, and others find this host.
#pragma once

#include <string>
#include <vector>

#include "launch/doctor/finding.hpp"
#include "launch/doctor/request.hpp"

namespace capstan::launch::doctor {

/// A host, as others are told of it.
struct HostDoor {
  std::string host;
  std::string address;  ///< of its first interface
  int port = 0;         ///< where it listens; 0: nowhere
};

/// One attempt to reach another host's door.
struct Knock {
  std::string from;
  std::string to;
  std::string by_name = {};     ///< why not by its name; empty: it answered
  std::string by_address = {};  ///< likewise, by the address of its first interface
};

/// Listens on a port of the system's choice, on all interfaces, until it dies. Throws Error(internal).
class Doorway {
 public:
  Doorway();
  ~Doorway();
  Doorway(const Doorway&) = delete;
  Doorway& operator=(const Doorway&) = delete;
  int port() const noexcept { return port_; }

 private:
  int socket_ = -1;
  int port_ = 0;
};

/// Resolves the host's name and connects; a name server or a firewall that does not answer gets two seconds
/// each.
Knock knock(const std::string& from, const HostDoor& door);

Finding check_host_name(const Request& request);
/// `addresses`: what the resolver makes of `host`.
Finding judge_host_name(const std::string& host, const std::vector<std::string>& addresses);
/// A host that answers by neither fails. Ranks have each other's addresses from UCX, so that names alone
/// warn.
Finding judge_knocks(const std::vector<Knock>& knocks);

}  // namespace capstan::launch::doctor
