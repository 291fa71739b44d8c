// variables.hpp -- names of the variables of `capstan train kge` in a checkpoint.
#pragma once

namespace capstan::kge {

inline constexpr const char* kEntityRows = "entities";
inline constexpr const char* kEntityNames = "entity_names";
inline constexpr const char* kRelationRows = "relations";  // two for each relation: it and its reciprocal
inline constexpr const char* kRelationNames = "relation_names";

}  // namespace capstan::kge
