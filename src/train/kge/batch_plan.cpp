// batch_plan.cpp -- see batch_plan.hpp.
#include "train/kge/batch_plan.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "base/assert.hpp"
#include "capstan/error.hpp"
#include "train/counter_rng.hpp"

namespace capstan::kge {
namespace {

void check(const StepOptions& options) {
  const auto reject = [](std::string_view name, auto value, std::string_view expected) {
    throw Error(Code::invalid_argument, fmt::format("{} is {}, expected {}", name, value, expected));
  };
  if (options.dim <= 0) reject("dim", options.dim, "at least 1");
  if (has_complex_rows(options.model) && options.dim % 2 != 0) {
    reject("dim", options.dim,
           fmt::format("an even number for the model {}: a complex number is two floats",
                       to_string(options.model)));
  }
  if (options.negatives <= 0) reject("negatives", options.negatives, "at least 1");
  if (!(options.n3 >= 0)) reject("n3", options.n3, "at least 0");
  if (options.n3 > 0 && !has_n3(options.model))
    reject("n3", options.n3, fmt::format("0 for the model {}", to_string(options.model)));
  if (!(options.margin >= 0)) reject("margin", options.margin, "at least 0");
  if (options.margin > 0 && options.model != ModelKind::rotate)
    reject("margin", options.margin, fmt::format("0 for the model {}", to_string(options.model)));
  if (options.entities < 2) reject("the number of entities", options.entities, "at least 2");
  if (options.relations < 1) reject("the number of relations", options.relations, "at least 1");
}

}  // namespace

BatchPlan::BatchPlan(const StepOptions& options) : options_(options) { check(options); }

void BatchPlan::draw(std::span<const Triple> batch, std::uint64_t seed, std::uint64_t batch_number) {
  CAPSTAN_ASSERT(!batch.empty());
  const auto negatives = static_cast<std::size_t>(options_.negatives);
  entity_occurrences_.resize(2 * batch.size() + negatives);
  relation_occurrences_.resize(2 * batch.size());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const Triple& triple = batch[i];
    entity_occurrences_[i] = triple.head;
    entity_occurrences_[batch.size() + i] = triple.tail;
    relation_occurrences_[i] = triple.relation;
    relation_occurrences_[batch.size() + i] = triple.relation + options_.relations;
  }
  const train::CounterRng random(seed, batch_number);
  const auto entities = static_cast<std::uint64_t>(options_.entities);
  for (std::size_t j = 0; j < negatives; ++j) {
    entity_occurrences_[2 * batch.size() + j] = static_cast<std::int64_t>(random.below(entities, j));
  }
  entity_index_.build(entity_occurrences_);
  relation_index_.build(relation_occurrences_);
  CAPSTAN_ASSERT(entity_ids().back() < options_.entities);
  CAPSTAN_ASSERT(relation_ids().back() < 2 * options_.relations);
}

float logit_correction(const StepOptions& options) noexcept {
  return std::log(static_cast<float>(options.entities - 1) / static_cast<float>(options.negatives));
}

}  // namespace capstan::kge
