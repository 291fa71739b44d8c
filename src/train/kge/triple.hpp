// triple.hpp -- one fact of a knowledge graph: head, relation, tail.
#pragma once

#include <cstdint>

namespace capstan::kge {

struct Triple {
  std::int32_t head = 0;
  std::int32_t relation = 0;
  std::int32_t tail = 0;

  friend bool operator==(const Triple&, const Triple&) = default;
};

}  // namespace capstan::kge
