// pair_plan.hpp -- which ranks try each other.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace capstan::launch::doctor {

/// From the lower rank to the higher. One side alone connects, as a worker does to a ps: of two that connect
/// to each other at a time, UCX 1.13 gives one an endpoint that knows the other's network alone, and maps no
/// memory.
using Pair = std::pair<int, int>;

/// For `count` things in a ring, those that number `self` meets: all others of a few; of many those 1, 2, 4,
/// 8, ... further on, so that everyone is met and nobody meets more than log2(count).
std::vector<int> further_on(int self, int count);

/// Whom rank `self` connects to: of those that meet, the higher ones.
std::vector<int> connects_to(int self, int count);

/// Pairs that stand for their class: the first two ranks of every host, and the first rank of every host with
/// that of the next. No two ranks are a pair twice. `hosts`: by rank.
std::vector<Pair> standing_for_all(const std::vector<std::string>& hosts);

/// The same pairs, in rounds in which no rank is in two.
std::vector<std::vector<Pair>> in_rounds(const std::vector<Pair>& pairs);

}  // namespace capstan::launch::doctor
