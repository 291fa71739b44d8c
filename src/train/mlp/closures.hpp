// closures.hpp -- what runs on the workers of `capstan train mlp`.
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
#include "train/orders.hpp"

namespace capstan::train {

struct ImageInput {
  std::vector<std::string> images, labels;
  std::vector<std::string> test_images, test_labels;
  double l2 = 0;
  bool on_gpu = false;
};

/// A GPU's network, with the values of all layers and their gradient in its memory.
struct GpuNetwork {
  explicit GpuNetwork(const Layers& layers);
  DeviceStream stream;
  DeviceNetwork network;
  DeviceArray<float> values, gradient;
};

/// A worker's shares of the data, in memory since they were first asked for, and a network for each replica.
class ImageShelf {
 public:
  explicit ImageShelf(ImageInput input) : input_(std::move(input)) {}
  const Images& share(bool test, std::int64_t share, std::int64_t shares);
  bool has_test() const { return !input_.test_images.empty(); }
  double l2() const { return input_.l2; }
  /// One for each replica of this worker.
  std::vector<Network>& networks(const std::vector<std::int64_t>& widths);

  /// Null where cores are to compute. Throws Error: failed_precondition where there is no GPU;
  /// resource_exhausted.
  GpuNetwork* gpu(const std::vector<std::int64_t>& widths);

  std::vector<float> values;
  bool warned = false;  // that a GPU has no room to evaluate

 private:
  ImageInput input_;
  std::map<std::pair<bool, std::int64_t>, Images> files_;
  std::vector<Network> networks_;
  std::unique_ptr<GpuNetwork> gpu_;
};
ImageShelf make_image_shelf(ImageInput input);

/// Reads the shares, so that bad input is found before training.
DataSizes load_images(PerWorker<ImageShelf> shelf, Shares shares);
/// For each batch: reads all layers, cuts the batch over the replicas, or has a GPU compute it, and pushes
/// the sum of the gradients.
TrainResult train_images(PerWorker<ImageShelf> shelf, TrainOrder order, UpdateGroup group,
                         std::vector<std::int64_t> widths, std::vector<Variable<float>> layers);
/// By the GPU where there is one, or by cores where it has no room, which is a warning, once.
Scores evaluate_images(PerWorker<ImageShelf> shelf, EvaluateOrder order, std::vector<std::int64_t> widths,
                       std::vector<Variable<float>> layers);

}  // namespace capstan::train
