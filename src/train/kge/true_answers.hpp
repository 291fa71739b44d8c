// true_answers.hpp -- all known answers of a query (entity, relation).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "train/kge/triple.hpp"

namespace capstan::kge {

/// Built once from every known triple (train, valid and test), in both directions: the tails of (head, r)
/// and, under r + relations, the heads of (tail, r). Sorted keys with offsets into one array: 16 bytes per
/// key, 4 per answer. Immutable afterwards, so threads may share it.
class TrueAnswers {
 public:
  TrueAnswers() = default;
  TrueAnswers(std::span<const Triple> triples, std::int64_t relations);

  /// Sorted and unique; empty if no answer is known. `relation` includes reciprocal relations.
  std::span<const std::int32_t> of(std::int32_t entity, std::int32_t relation) const noexcept;

 private:
  std::vector<std::uint64_t> keys_;  // entity in the upper half, relation in the lower
  std::vector<std::uint64_t> offsets_;
  std::vector<std::int32_t> answers_;
};

}  // namespace capstan::kge
