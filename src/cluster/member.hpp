// member.hpp -- one rank of the cluster as all others know it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "capstan/cluster.hpp"

namespace capstan::cluster {

/// What a rank says of itself before anybody knows its role.
struct Hello {
  std::string host;
  std::int64_t pid = 0;
  std::uint64_t build = 0;  // hash of the binary
  std::string roles;        // the settings that the role map is made from, which must agree
  std::vector<std::byte> control_address;
  std::vector<std::byte> data_address;
  std::int64_t replicas = 1;  // which must agree, too
};

struct Member {
  int rank = 0;
  Role role = Role::worker;
  int index = 0;  // among its role
  std::string host;
  std::int64_t pid = 0;
  std::vector<std::byte> control_address;
  std::vector<std::byte> data_address;

  /// "ps 1 (rank 2 on node17)"
  std::string name() const {
    return std::string(to_string(role)) + " " + std::to_string(index) + " (rank " + std::to_string(rank) +
           " on " + host + ")";
  }
};

/// What the agent hands down to its child.
struct Table {
  int rank = 0;
  std::vector<Member> members;
};

}  // namespace capstan::cluster
