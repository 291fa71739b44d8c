// hosts.hpp -- the host file of --hosts.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace capstan::launch::run {

struct Host {
  std::string name;
  int slots = 1;
  friend bool operator==(const Host&, const Host&) = default;
};

/// Accepts "n1", "n1 slots=4" (Open MPI) and "n1:4" (MPICH), mixed; # starts a comment. Slots of repeated
/// hosts are added. Throws Error: not_found, permission_denied, or invalid_argument with file and line.
std::vector<Host> read_hosts(const std::filesystem::path& file);

}  // namespace capstan::launch::run
