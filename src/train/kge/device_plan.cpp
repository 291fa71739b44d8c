// device_plan.cpp -- builds the lists by a counting sort, linear in the number of uses.
#include "train/kge/device_plan.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace capstan::kge {
namespace {

std::uint32_t to_u32(std::size_t size) { return static_cast<std::uint32_t>(size); }

}  // namespace

void DevicePlan::draw(std::span<const Triple> batch, std::uint64_t seed, std::uint64_t batch_number) {
  batch_.draw(batch, seed, batch_number);
  if (copied_) copied_->wait();
  const std::size_t queries = batch_.queries();
  const std::size_t entities = batch_.entity_ids().size(), relations = batch_.relation_ids().size();
  const std::size_t entity_uses = batch_.entity_positions().size();
  const std::size_t all_uses = entity_uses + queries;
  max_words_ = 4 * all_uses + max_chunks(all_uses) + 2;  // there are at most as many rows as uses
  if (max_words_ * sizeof(std::uint32_t) > pinned_.size()) {
    pinned_ = {};
    pinned_ = gpu::PinnedMemory(max_words_ * sizeof(std::uint32_t));
  }
  auto* const words = reinterpret_cast<std::uint32_t*>(pinned_.data());
  std::ranges::copy(batch_.entity_positions(), words);
  std::ranges::copy(batch_.relation_positions(), words + entity_uses);
  std::uint32_t* const uses = words + all_uses;
  std::uint32_t* const charges = uses + all_uses;

  chunk_begins_.clear();
  row_chunks_.clear();
  shape_ = {to_u32(queries), to_u32(entity_uses - queries), to_u32(entities), to_u32(relations)};
  add_lists(batch_.entity_positions(), entities, queries, uses, charges);
  shape_.entity_chunks = to_u32(chunk_begins_.size());
  add_lists(batch_.relation_positions(), relations, queries, uses + entity_uses, charges + entities);
  shape_.chunks = to_u32(chunk_begins_.size());
  for (std::size_t i = shape_.entity_chunks; i < chunk_begins_.size(); ++i) {
    chunk_begins_[i] += to_u32(entity_uses);
  }
  chunk_begins_.push_back(to_u32(all_uses));
  row_chunks_.push_back(shape_.chunks);
  auto* const row_chunks = charges + entities + relations;
  auto* const end = std::ranges::copy(chunk_begins_, std::ranges::copy(row_chunks_, row_chunks).out).out;
  words_ = static_cast<std::size_t>(end - words);
  CAPSTAN_ASSERT(words_ <= max_words_);
}

/// Adds the lists of the entities or of the relations. The penalty counts only uses below `charged`.
void DevicePlan::add_lists(std::span<const std::int32_t> positions, std::size_t rows, std::size_t charged,
                           std::uint32_t* uses, std::uint32_t* charges) {
  begins_.assign(rows + 1, 0);
  std::fill_n(charges, rows, 0U);
  for (std::size_t use = 0; use < positions.size(); ++use) {
    const auto row = static_cast<std::size_t>(positions[use]);
    ++begins_[row + 1];
    if (use < charged) ++charges[row];
  }
  for (std::size_t row = 0; row < rows; ++row) {
    begins_[row + 1] += begins_[row];
    row_chunks_.push_back(to_u32(chunk_begins_.size()));
    for (std::uint32_t at = begins_[row]; at < begins_[row + 1]; at += kChunkUses) {
      chunk_begins_.push_back(at);
    }
  }
  for (std::size_t use = 0; use < positions.size(); ++use) {
    uses[begins_[static_cast<std::size_t>(positions[use])]++] = to_u32(use);
  }
}

DeviceLists DevicePlan::start_copy(const gpu::Stream& stream, std::uint32_t* destination) {
  gpu::copy(stream, destination, pinned_.data(), words_ * sizeof(std::uint32_t));
  if (!copied_) copied_.emplace(stream.device());
  copied_->record(stream);
  DeviceLists lists = shape_;
  lists.entity_positions = destination;
  lists.relation_positions = lists.entity_positions + lists.queries + lists.negatives;
  lists.uses = lists.relation_positions + lists.queries;
  lists.charges = lists.uses + 2 * std::size_t{lists.queries} + lists.negatives;
  lists.row_chunks = lists.charges + lists.entities + lists.relations;
  lists.chunk_begins = lists.row_chunks + lists.entities + lists.relations + 1;
  return lists;
}

}  // namespace capstan::kge
