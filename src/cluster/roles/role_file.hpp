// role_file.hpp -- roles by rank or by host, from a text file.
//
//   0            coordinator     # ranks: 0, 1-3, 0,4-6
//   host=n[7-8]  ps              # all ranks on these hosts that no other line names
//   *            worker          # all other ranks
#pragma once

#include <span>
#include <string>
#include <vector>

#include "capstan/cluster.hpp"

namespace capstan::cluster {

/// Returns the role of each of `hosts` (host name by rank). Throws Error: not_found, or invalid_argument. The
/// message names the file, the line and the expected text, or a rank that has no role.
std::vector<Role> read_role_file(const std::string& path, std::span<const std::string> hosts);

/// Like read_role_file, for the text of a file. `path` is for messages.
std::vector<Role> parse_role_file(const std::string& path, const std::string& text,
                                  std::span<const std::string> hosts);

}  // namespace capstan::cluster
