// device_plan.hpp -- a batch's plan as a step on a GPU reads it: for each row the list of what uses it.
//
// A row's gradient is the sum of what its uses give, added in the list's order, so that every run gives the
// same bits. Lists are cut into chunks, since a batch may name one relation thousands of times: threads add
// up the chunks, then each row's chunks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gpu/gpu.hpp"
#include "train/kge/batch_plan.hpp"

namespace capstan::kge {

/// Of uses at most, in a chunk.
inline constexpr std::uint32_t kChunkUses = 32;

/// Chunks that so many uses make, at most.
constexpr std::size_t most_chunks(std::size_t uses) noexcept { return uses + uses / kChunkUses; }

/// Lists of a plan in a GPU's memory. Rows are those of entities, then those of relations.
struct DeviceLists {
  std::uint32_t queries = 0, negatives = 0, entities = 0, relations = 0, entity_chunks = 0, chunks = 0;
  const std::uint32_t* entity_places = nullptr;    // [queries + negatives], see BatchPlan
  const std::uint32_t* relation_places = nullptr;  // [queries]
  const std::uint32_t* uses = nullptr;             // [2 * queries + negatives], a row's own together
  const std::uint32_t* chunk_begins = nullptr;     // [chunks + 1], among the uses
  const std::uint32_t* row_chunks = nullptr;       // [entities + relations + 1], the first chunk of each
  const std::uint32_t* charges = nullptr;          // [entities + relations], uses that the penalty counts
};

/// Used by one thread at a time. Its memory grows with the largest batch.
class DevicePlan {
 public:
  /// Throws Error(invalid_argument) when an option makes no sense.
  explicit DevicePlan(const StepOptions& options) : batch_(options) {}

  /// As BatchPlan::draw. Waits until what `start_copy` began is done.
  void draw(std::span<const Triple> batch, std::uint64_t seed, std::uint64_t batch_number);
  const BatchPlan& batch() const noexcept { return batch_; }

  /// Words that the lists of a batch of its size take at most.
  std::size_t most_words() const noexcept { return most_words_; }
  /// Gives the stream a copy of them to `there`, which has room for as many. What they are after that.
  DeviceLists start_copy(const gpu::Stream& stream, std::uint32_t* there);

 private:
  void add_lists(std::span<const std::int32_t> places, std::size_t rows, std::size_t charged,
                 std::uint32_t* uses, std::uint32_t* charges);

  BatchPlan batch_;
  std::vector<std::uint32_t> begins_;  // of rows among their uses
  std::vector<std::uint32_t> chunk_begins_, row_chunks_;
  DeviceLists shape_;
  std::size_t most_words_ = 0, words_ = 0;
  gpu::PinnedMemory pinned_;
  std::optional<gpu::Event> copied_;
};

}  // namespace capstan::kge
