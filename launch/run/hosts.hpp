// hosts.hpp -- the file of --hosts.
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

/// Lines "n1", "n1 slots=4" (Open MPI's) or "n1:4" (MPICH's), in any mixture; # begins a comment. Throws
/// Error: not_found, permission_denied, or invalid_argument that names file and line.
std::vector<Host> read_hosts(const std::filesystem::path& file);

}  // namespace capstan::launch::run
