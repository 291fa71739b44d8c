// wordnet.hpp -- WordNet's synsets and the semantic relations between them as a graph.
#pragma once

#include <cstdint>
#include <filesystem>

#include "io/data/graph.hpp"

namespace capstan::io {

/// How many of the edges are held out, and which.
struct WordnetSplit {
  double valid = 0.02;
  double test = 0.02;
  std::uint64_t seed = 0;
};

inline constexpr const char* kWordnetFolder = "/usr/share/wordnet";

/// Reads data.noun, data.verb, data.adj and data.adv (format: wndb(5WN)). Entities are all synsets, named
/// "whale.n.01": first word, part of speech (n, v, a, r), running number among the synsets of the file that
/// begin with this word. Triples are the pointers from synset to synset, named in words ("hypernym",
/// "part_meronym"; wninput(5WN)).
///
/// All triples between the same two synsets, whichever way they point, fall into the same split, so no
/// held-out one has its inverse in train. Held-out ones are moved to train when one of their ends would have
/// no triple there, so every entity that has a triple has one in train; `unseen` is zero.
///
/// Throws Error: not_found (with the package to install), data_loss with file and line, invalid_argument for
/// shares that are negative or leave nothing to train on.
Graph read_wordnet(const std::filesystem::path& dict = kWordnetFolder, const WordnetSplit& split = {});

}  // namespace capstan::io
