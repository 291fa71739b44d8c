// pair_plan.hpp -- selects the pairs of ranks to test.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace capstan::launch::doctor {

/// (lower rank, higher rank). Only the lower rank connects, as a worker does to a ps. If two processes
/// connect to each other at once, UCX 1.13 gives one an endpoint without shared memory, which cannot map.
using Pair = std::pair<int, int>;

/// Neighbors of member `self` in a ring of `count`: all others if `count` is at most 8, else the members at
/// distances 1, 2, 4, 8, ..., about log2(count) of them.
std::vector<int> ring_neighbors(int self, int count);

/// Ranks above `self` that are a neighbor of `self` or have `self` as a neighbor.
std::vector<int> connect_targets(int self, int count);

/// Representative pairs: the first two ranks of every host, and the first ranks of every two consecutive
/// hosts. No pair occurs twice. `hosts` is indexed by rank.
std::vector<Pair> representative_pairs(const std::vector<std::string>& hosts);

/// Distributes the pairs over rounds such that no rank is in two pairs of a round.
std::vector<std::vector<Pair>> disjoint_rounds(const std::vector<Pair>& pairs);

}  // namespace capstan::launch::doctor
