// device_plan.hpp -- a batch's plan in the layout of the GPU step: for each row, the list of its uses.
//
// A row's gradient is the sum of the contributions of its uses, added in the order of the list, so that
// results are bitwise reproducible. Lists are divided into chunks, since a batch may use one relation
// thousands of times: threads first sum each chunk, then the chunks of each row.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gpu/gpu.hpp"
#include "train/kge/batch_plan.hpp"

namespace capstan::kge {

/// Maximum number of uses in a chunk.
inline constexpr std::uint32_t kChunkUses = 32;

/// Upper bound of the number of chunks.
constexpr std::size_t max_chunks(std::size_t uses) noexcept { return uses + uses / kChunkUses; }

/// Lists of a plan in the GPU's memory. Rows are the entities, followed by the relations.
struct DeviceLists {
  std::uint32_t queries = 0, negatives = 0, entities = 0, relations = 0, entity_chunks = 0, chunks = 0;
  const std::uint32_t* entity_positions = nullptr;    // [queries + negatives], see BatchPlan
  const std::uint32_t* relation_positions = nullptr;  // [queries]
  const std::uint32_t* uses = nullptr;                // [2 * queries + negatives], grouped by row
  const std::uint32_t* chunk_begins = nullptr;        // [chunks + 1], indices in `uses`
  const std::uint32_t* row_chunks = nullptr;          // [entities + relations + 1], first chunk of each row
  const std::uint32_t* charges = nullptr;             // [entities + relations], uses counted by the penalty
};

/// Used by one thread at a time. Its buffers grow with the largest batch.
class DevicePlan {
 public:
  /// Throws Error(invalid_argument) for an invalid option.
  explicit DevicePlan(const StepOptions& options) : batch_(options) {}

  /// See BatchPlan::draw. Blocks until the copy that start_copy() enqueued is complete.
  void draw(std::span<const Triple> batch, std::uint64_t seed, std::uint64_t batch_number);
  const BatchPlan& batch() const noexcept { return batch_; }

  /// Upper bound of the size of the lists, in 32-bit words, for any batch with as many triples.
  std::size_t max_words() const noexcept { return max_words_; }
  /// Enqueues a copy of the lists to `destination`, which has room for max_words(), and returns their
  /// addresses there.
  DeviceLists start_copy(const gpu::Stream& stream, std::uint32_t* destination);

 private:
  void add_lists(std::span<const std::int32_t> positions, std::size_t rows, std::size_t charged,
                 std::uint32_t* uses, std::uint32_t* charges);

  BatchPlan batch_;
  std::vector<std::uint32_t> begins_;  // by row: index of its first use
  std::vector<std::uint32_t> chunk_begins_, row_chunks_;
  DeviceLists shape_;
  std::size_t max_words_ = 0, words_ = 0;
  gpu::PinnedMemory pinned_;
  std::optional<gpu::Event> copied_;
};

}  // namespace capstan::kge
