// pair_split.cpp -- splits by hash, then moves held-out pairs with an entity that is not in train to train.
#include "io/data/pair_split.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>
#include <vector>

#include "capstan/error.hpp"

namespace capstan::io {
namespace {

enum class Split : std::uint8_t { train, valid, test };

std::uint64_t pair_key(const GraphTriple& triple) {
  const auto low = static_cast<std::uint32_t>(std::min(triple.head, triple.tail));
  const auto high = static_cast<std::uint32_t>(std::max(triple.head, triple.tail));
  return std::uint64_t{low} << 32 | high;
}

Split split_of(std::uint64_t key, const SplitShares& shares) {
  const double at =
      std::ldexp(static_cast<double>(XXH3_64bits_withSeed(&key, sizeof key, shares.seed) >> 11), -53);
  if (at < shares.test) return Split::test;
  return at < shares.test + shares.valid ? Split::valid : Split::train;
}

}  // namespace

void check_shares(double valid, double test) {
  if (valid >= 0 && test >= 0 && valid + test < 1) return;
  throw Error(
      Code::invalid_argument,
      fmt::format("the shares are {} for valid and {} for test, expected 0 or more, and a sum below 1", valid,
                  test));
}

void split_by_pair(std::span<const GraphTriple> triples, const SplitShares& shares, Graph& graph) {
  std::vector<bool> in_train(graph.entities.size(), false);
  const auto mark = [&](const GraphTriple& triple) {
    in_train[static_cast<std::size_t>(triple.head)] = true;
    in_train[static_cast<std::size_t>(triple.tail)] = true;
  };
  std::unordered_map<std::uint64_t, Split> held_out;
  for (const GraphTriple& triple : triples) {
    const auto key = pair_key(triple);
    const Split split = split_of(key, shares);
    if (split == Split::train) {
      mark(triple);
    } else {
      held_out.emplace(key, split);
    }
  }
  for (const GraphTriple& triple : triples) {
    const bool seen =
        in_train[static_cast<std::size_t>(triple.head)] && in_train[static_cast<std::size_t>(triple.tail)];
    if (!seen && held_out.erase(pair_key(triple)) > 0) mark(triple);
  }
  for (const GraphTriple& triple : triples) {
    const auto found = held_out.find(pair_key(triple));
    auto& to = found == held_out.end()         ? graph.train
               : found->second == Split::valid ? graph.valid
                                               : graph.test;
    to.push_back(triple);
  }
}

}  // namespace capstan::io
