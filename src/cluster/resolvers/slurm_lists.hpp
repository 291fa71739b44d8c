// slurm_lists.hpp -- the two list formats of Slurm's variables.
#pragma once

#include <string>
#include <vector>

namespace capstan::cluster {

/// Returns hosts in order: "n[1-2],m5,o[3-4,6]" is n1 n2 m5 o3 o4 o6, "n[08-10]" is n08 n09 n10,
/// "r[0-1]n[1-2]" is r0n1 r0n2 r1n1 r1n2. `variable` is the source of the text. Throws
/// Error(invalid_argument). Its message names `variable`, the position (from 1), and the expected text there.
std::vector<std::string> expand_hosts(const std::string& variable, const std::string& text);

/// Returns tasks per host: "3(x2),2,1" is 3 3 2 1. Throws like expand_hosts.
std::vector<int> expand_counts(const std::string& variable, const std::string& text);

/// Returns how many numbers "0,2,4-7" has: 6. Throws like expand_hosts.
int count_numbers(const std::string& variable, const std::string& text);

}  // namespace capstan::cluster
