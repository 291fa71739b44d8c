// trainer.hpp -- what trains on a worker: its cores, or a GPU.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "capstan/variable.hpp"
#include "train/kge/batch_plan.hpp"
#include "train/kge/triple.hpp"

namespace capstan::kge {

/// Consecutive batches of one epoch.
struct Slice {
  std::vector<Triple> triples;
  std::int32_t batch = 0;         // triples in a batch; the last may have fewer
  std::uint64_t seed = 0;         // of the negatives
  std::uint64_t first_batch = 0;  // number of the first batch since the beginning of training
};

struct SliceResult {
  double loss_sum = 0;
  std::int64_t queries = 0;
  std::int64_t triples = 0;
};

struct TrainerOptions {
  StepOptions step;
  bool on_gpu = false;
  /// On a GPU: the rows of a batch are looked up while the one before it is computed, and lack its gradients.
  bool looks_ahead = false;
};

/// Keeps its buffers from slice to slice. Used by one thread at a time.
class Trainer {
 public:
  virtual ~Trainer() = default;
  /// For each batch: looks up the rows it needs and no others, pushes their gradients.
  virtual SliceResult train(const Slice& slice, const Variable<float>& entities,
                            const Variable<float>& relations) = 0;
};

/// On a worker. Throws Error: invalid_argument for options that make no sense, failed_precondition with the
/// reason where there is no GPU.
std::unique_ptr<Trainer> make_trainer(TrainerOptions options);
/// By this GPU.
std::unique_ptr<Trainer> make_device_trainer(const TrainerOptions& options, int device);

}  // namespace capstan::kge
