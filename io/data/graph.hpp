// graph.hpp -- a knowledge graph in memory: names, and triples of their indexes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace capstan::io {

/// Indexes into Graph::entities and Graph::relations.
struct GraphTriple {
  std::int32_t head = 0;
  std::int32_t relation = 0;
  std::int32_t tail = 0;
  friend bool operator==(const GraphTriple&, const GraphTriple&) = default;
};

/// Entities and relations in valid and test that do not occur in train, so that they cannot be learned.
struct Unseen {
  std::size_t entities = 0;
  std::size_t relations = 0;
  std::size_t triples = 0;     // triples of valid and test with an unseen entity or relation
  std::string entity_example;  // "test.txt:17: entity \"02314\""; empty if there is none
  std::string relation_example;
};

struct Graph {
  std::vector<std::string> entities;
  std::vector<std::string> relations;
  std::vector<GraphTriple> train;
  std::vector<GraphTriple> valid;
  std::vector<GraphTriple> test;
  Unseen unseen;
};

}  // namespace capstan::io
