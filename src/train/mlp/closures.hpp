// closures.hpp -- closures of `capstan train mlp` on the workers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "capstan/capstan.hpp"
#include "train/metrics.hpp"
#include "train/mlp/device_network.hpp"
#include "train/mlp/images.hpp"
#include "train/mlp/network.hpp"
#include "train/tasks.hpp"

namespace capstan::train {

struct ImageInput {
  PartFiles images, labels;
  double l2 = 0;
  bool on_gpu = false;
};

/// A network on a GPU, with the values of all layers and their gradient in its memory.
struct GpuNetwork {
  explicit GpuNetwork(const Layers& layers);
  DeviceStream stream;
  DeviceNetwork network;
  DeviceArray<float> values, gradient;
};

/// A worker's shares of the data, loaded on first use, and a network for each replica. Used by one thread at
/// a time.
class ImageWorkerState {
 public:
  explicit ImageWorkerState(ImageInput input) : input_(std::move(input)) {}
  const Images& share(Part part, std::int64_t share, std::int64_t shares);
  bool has(Part part) const { return input_.images.has(part); }
  double l2() const { return input_.l2; }
  /// One network for each replica of this worker.
  std::vector<Network>& networks(const std::vector<std::int64_t>& widths);

  /// Returns the network of the GPU, or null if the worker computes on the CPU. Throws Error:
  /// failed_precondition without a GPU; resource_exhausted.
  GpuNetwork* gpu(const std::vector<std::int64_t>& widths);

  std::vector<float> values;
  bool evaluation_warned = false;  // a warning that the GPU's memory does not suffice was logged

 private:
  ImageInput input_;
  std::map<std::pair<Part, std::int64_t>, Images> files_;
  std::vector<Network> networks_;
  std::unique_ptr<GpuNetwork> gpu_;
};
ImageWorkerState make_image_worker_state(ImageInput input);

/// Reads the shares, so that invalid input is reported before training starts.
DataSizes load_images(PerWorker<ImageWorkerState> state, Shares shares);
/// For each batch: pulls all layers, computes the gradient and pushes it. Computes on the GPU or on the
/// replicas, each with a part of the batch.
TrainResult train_images(PerWorker<ImageWorkerState> state, TrainTask task, UpdateGroup group,
                         std::vector<std::int64_t> widths, std::vector<Variable<float>> layers);
/// Evaluates on the GPU if there is one. If its memory does not suffice, evaluates on the CPU, with one
/// warning per worker.
Scores evaluate_images(PerWorker<ImageWorkerState> state, EvaluateTask task, std::vector<std::int64_t> widths,
                       std::vector<Variable<float>> layers);

}  // namespace capstan::train
