// pair_split.hpp -- splits triples so that no held-out triple has its inverse in train.
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

/// Throws Error(invalid_argument) if a share is negative or NaN, or if the sum is 1 or more.
void check_shares(double valid, double test);

/// Fills the three lists of `graph`, in the order of `triples`. XXH3 of the indexes of a triple's entities,
/// the smaller first, selects the list, so that all triples between two entities are in one list. Then, in
/// the order of the triples, each held-out pair with an entity that has no triple in train moves to train, so
/// that every entity with a triple has one in train. The held-out shares are therefore slightly smaller than
/// requested. REQUIRES: `graph` has its entities.
void split_by_pair(std::span<const GraphTriple> triples, const SplitShares& shares, Graph& graph);

}  // namespace capstan::io
