// trainer.hpp -- training on a worker, on its CPU cores or a GPU.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "train/kge/batch_plan.hpp"
#include "train/kge/table.hpp"
#include "train/kge/triple.hpp"

namespace capstan::kge {

/// Consecutive batches of one epoch.
struct Slice {
  std::vector<Triple> triples;
  std::int32_t batch = 0;         // triples in a batch; the last may have fewer
  std::uint64_t seed = 0;         // seed of the negatives
  std::uint64_t first_batch = 0;  // number of the first batch since the start of training
};

struct SliceResult {
  double loss_sum = 0;
  std::int64_t queries = 0;
  std::int64_t triples = 0;
};

struct TrainerOptions {
  StepOptions step;
  bool on_gpu = false;
  /// On a GPU: look up the rows of a batch while the previous batch is computed, so that the rows lack the
  /// gradients of that batch.
  bool looks_ahead = false;
};

/// Keeps its buffers between slices. Used by one thread at a time.
class Trainer {
 public:
  virtual ~Trainer() = default;
  /// For each batch: looks up only the rows that it uses, and pushes their gradients. REQUIRES on a GPU:
  /// float32 tables.
  virtual SliceResult train(const Slice& slice, const Table& entities, const Table& relations) = 0;
};

/// Called on a worker. Throws Error: invalid_argument for an invalid option; failed_precondition, with the
/// reason, without a GPU.
std::unique_ptr<Trainer> make_trainer(TrainerOptions options);
/// Trains on GPU `device` of this process.
std::unique_ptr<Trainer> make_device_trainer(const TrainerOptions& options, int device);

}  // namespace capstan::kge
