// pair_split.hpp -- cuts triples into train, valid and test so that no held-out one has its inverse in train.
#pragma once

#include <cstdint>
#include <span>

#include "io/data/graph.hpp"

namespace capstan::io {

struct SplitShares {
  double valid = 0;
  double test = 0;
  std::uint64_t seed = 0;
};

/// Throws Error invalid_argument for a share that is negative or not a number, or two that leave nothing for
/// train.
void check_shares(double valid, double test);

/// Fills the three lists of `graph`, which has its entities, in the order of `triples`. Where a triple goes
/// is decided by XXH3 of its two entities' numbers, the smaller first, so all triples between the same two go
/// together. Then every held-out pair with an end that has no triple in train goes to train, in order of the
/// triples, so that every entity that has a triple has one in train. So held-out shares come out a little
/// smaller than asked for.
void split_by_pair(std::span<const GraphTriple> triples, const SplitShares& shares, Graph& graph);

}  // namespace capstan::io
