// wordnet.hpp -- WordNet's synsets and the semantic relations between them as a graph.
#pragma once

#include <cstdint>
#include <filesystem>

#include "io/data/graph.hpp"

namespace capstan::io {

/// Shares of the triples to hold out, and the seed of the hash that selects these triples.
struct WordnetSplit {
  double valid = 0.02;
  double test = 0.02;
  std::uint64_t seed = 0;
};

inline constexpr const char* kWordnetDirectory = "/usr/share/wordnet";

/// Reads data.noun, data.verb, data.adj and data.adv (format: wndb(5WN)). Entities are all synsets, named
/// "whale.n.01": first word, part of speech (n, v, a, r), and a serial number among the synsets of the file
/// with that first word. Triples are the pointers between synsets, with relation names such as "hypernym" and
/// "part_meronym" (wninput(5WN)).
///
/// Splits the triples with split_by_pair: no held-out triple has its inverse in train, and every entity with
/// a triple has one in train; `unseen` is zero.
///
/// Throws Error: not_found (names the package to install), data_loss with file and line, invalid_argument as
/// check_shares does.
Graph read_wordnet(const std::filesystem::path& dict = kWordnetDirectory, const WordnetSplit& split = {});

}  // namespace capstan::io
