// device_step.hpp -- kge::Step by a GPU: loss and sparse gradients of a batch from rows in its memory.
//
//   plan.draw(batch, seed, number);                 // DevicePlan, on the host
//   rows of plan.batch().entity_ids() and relation_ids() into the GPU's memory
//   step.compute(plan, rows);                       // gives the work to the stream
//   what the stream does from now on finds the gradients
//
// The mathematics are Step's, in float; every run gives the same bits.
#pragma once

#include <cstdint>

#include "gpu/gpu.hpp"
#include "train/kge/batch_plan.hpp"
#include "train/kge/device_plan.hpp"

namespace capstan::kge {

/// Rows of a plan's ids, in their order and `dim` floats each, and room for their gradients. In the GPU's
/// memory, each as an allocation gives it or a multiple of 16 bytes behind that.
struct DeviceRows {
  const float* entities = nullptr;
  const float* relations = nullptr;
  float* entity_gradients = nullptr;
  float* relation_gradients = nullptr;
};

struct StepMemory;

/// Used by one thread at a time, which waits nowhere but in take_loss() and where memory grows. Gradients are
/// of the sum over the batch, not of the mean.
class DeviceStep {
 public:
  /// Scores that are in memory at once: 256 MiB of them.
  static constexpr std::size_t kMostScores = std::size_t{1} << 26;

  /// The stream outlives it. Throws Error: invalid_argument when an option makes no sense;
  /// resource_exhausted.
  DeviceStep(const StepOptions& options, const gpu::Stream& stream, std::size_t most_scores = kMostScores);

  /// REQUIRES: the plan has the same options and has drawn a batch. Throws Error: resource_exhausted when the
  /// GPU has no room, invalid_argument for batches that its kernels cannot count.
  void compute(DevicePlan& plan, const DeviceRows& rows);

  /// Waits. Of all batches that were computed since it was last called.
  Loss take_loss();

  const StepOptions& options() const noexcept { return options_; }

 private:
  StepMemory make_room(DevicePlan& plan, const DeviceRows& rows);
  void find_gradients(const StepMemory& memory);

  StepOptions options_;
  const gpu::Stream& stream_;
  std::size_t most_scores_;
  std::int64_t queries_ = 0;  // since the last take_loss
  gpu::Values<std::uint32_t> words_;
  gpu::Values<float> queries_rows_, negatives_, scores_, query_gradients_, negative_gradients_, sums_,
      of_queries_;
  gpu::Values<double> loss_;
};

}  // namespace capstan::kge
