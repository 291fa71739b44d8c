// kge_case.hpp -- a step of `capstan train kge` on a GPU with its rows there already, for perf_gpu.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/gpu.hpp"
#include "train/kge/device_step.hpp"

namespace capstan::perf {

/// A model with its own defaults, on a graph of WN18RR's size; with stand-ins a small one. Batches are
/// planned by turns in two plans, as the trainer does.
class KgeCase {
 public:
  KgeCase(const gpu::Stream& stream, kge::ModelKind model);

  std::string name() const;
  /// Loss and gradients of a batch, against their definition.
  bool is_right();
  void step(int number);
  double triples() const noexcept { return static_cast<double>(batch_.size()); }
  /// Of the products of matrices.
  double flops() const noexcept;

 private:
  kge::DeviceRows rows() const;

  const gpu::Stream& stream_;
  kge::StepOptions options_;
  std::vector<kge::Triple> batch_;
  kge::DeviceStep step_;
  std::array<kge::DevicePlan, 2> plans_;
  std::vector<float> host_entities_, host_relations_;  // whole tables
  gpu::Values<float> entities_, relations_, entity_gradients_, relation_gradients_;
};

}  // namespace capstan::perf
