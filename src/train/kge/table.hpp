// table.hpp -- the tables of entities and relations.
#pragma once

#include "capstan/variable.hpp"
#include "train/embedding_table.hpp"

namespace capstan::kge {

using Table = train::EmbeddingTable<Variable>;

}  // namespace capstan::kge
