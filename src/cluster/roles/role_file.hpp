// role_file.hpp -- roles rank by rank, or host by host, from a text file.
//
//   0            coordinator     # ranks: 0, 1-3, 0,4-6
//   host=n[7-8]  ps              # all ranks on these hosts that no other line has
//   *            worker          # all that are left
#pragma once

#include <span>
#include <string>
#include <vector>

#include "capstan/cluster.hpp"

namespace capstan::cluster {

/// The role of each of `hosts` (host name by rank). Throws Error: not_found, or invalid_argument that names
/// the file, the line, and what was expected there; or the rank that no line has.
std::vector<Role> read_role_file(const std::string& path, std::span<const std::string> hosts);

/// The same of a text; `path` is for messages.
std::vector<Role> parse_role_file(const std::string& path, const std::string& text,
                                  std::span<const std::string> hosts);

}  // namespace capstan::cluster
