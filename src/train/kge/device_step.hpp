// device_step.hpp -- kge::Step on a GPU: loss and sparse gradients of a batch from rows in its memory.
//
//   plan.draw(batch, seed, number);                 // DevicePlan, on the host
//   // copy the rows of plan.batch().entity_ids() and relation_ids() to the GPU's memory
//   step.compute(plan, rows);                       // enqueues the work; later work on the stream
//                                                   // sees the gradients
//
// The mathematics are those of Step, in float; results are bitwise reproducible.
#pragma once

#include <cstdint>

#include "gpu/gpu.hpp"
#include "train/kge/batch_plan.hpp"
#include "train/kge/device_plan.hpp"

namespace capstan::kge {

/// Rows of a plan's ids, in their order, `dim` floats each, and buffers for their gradients. In the GPU's
/// memory, aligned to 16 bytes.
struct DeviceRows {
  const float* entities = nullptr;
  const float* relations = nullptr;
  float* entity_gradients = nullptr;
  float* relation_gradients = nullptr;
};

struct StepMemory;

/// Used by one thread at a time. Blocks in take_loss() and where memory grows. Gradients are those of the sum
/// of the losses of a batch, not of the mean.
class DeviceStep {
 public:
  /// Maximum number of scores in memory: 256 MiB.
  static constexpr std::size_t kMaxScores = std::size_t{1} << 26;

  /// `stream` must outlive it. Throws Error: invalid_argument for an invalid option; resource_exhausted.
  DeviceStep(const StepOptions& options, const gpu::Stream& stream, std::size_t max_scores = kMaxScores);

  /// Enqueues the computation of the gradients. REQUIRES: the plan has the same options and has drawn a
  /// batch. Throws Error: resource_exhausted if the GPU's memory does not suffice; invalid_argument for a
  /// batch too large for the kernels.
  void compute(DevicePlan& plan, const DeviceRows& rows);

  /// Blocks. Returns the loss of all batches since the previous call.
  Loss take_loss();

  const StepOptions& options() const noexcept { return options_; }

 private:
  StepMemory reserve_buffers(DevicePlan& plan, const DeviceRows& rows);
  void compute_gradients(const StepMemory& memory);

  StepOptions options_;
  const gpu::Stream& stream_;
  std::size_t max_scores_;
  std::int64_t queries_ = 0;  // since the last take_loss
  gpu::Values<std::uint32_t> words_;
  gpu::Values<float> query_rows_, negatives_, scores_, query_gradients_, negative_gradients_, sums_,
      per_query_;
  gpu::Values<double> loss_;
};

}  // namespace capstan::kge
