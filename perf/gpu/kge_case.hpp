// kge_case.hpp -- case of perf_gpu: steps of `capstan train kge` on a GPU whose memory holds all rows.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/gpu.hpp"
#include "train/kge/device_step.hpp"

namespace capstan::perf {

/// A model with its default options on a graph of the size of WN18RR; a small model and graph if stand-ins
/// replace the GPUs. Batches alternate between two plans, as in the trainer.
class KgeCase {
 public:
  KgeCase(const gpu::Stream& stream, kge::ModelKind model);

  std::string name() const;
  /// Returns true if loss and gradients of a batch equal those of a plain implementation.
  bool is_correct();
  void step(int number);
  double triples() const noexcept { return static_cast<double>(batch_.size()); }
  /// Floating-point operations of the matrix products of a step.
  double flops() const noexcept;

 private:
  kge::DeviceRows rows() const;

  const gpu::Stream& stream_;
  kge::StepOptions options_;
  std::vector<kge::Triple> batch_;
  kge::DeviceStep step_;
  std::array<kge::DevicePlan, 2> plans_;
  std::vector<float> host_entities_, host_relations_;  // complete tables
  gpu::Values<float> entities_, relations_, entity_gradients_, relation_gradients_;
};

}  // namespace capstan::perf
