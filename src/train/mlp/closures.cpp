// closures.cpp -- training and evaluation of mlp on a worker, on its GPU or on the CPU.
#include "train/mlp/closures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "base/log.hpp"
#include "train/assigned_gpu.hpp"
#include "train/epoch.hpp"

namespace capstan::train {
namespace {

constexpr std::int64_t kEvaluationImages = 1024;

void pull_to_host(const Layers& shapes, const std::vector<Variable<float>>& layers,
                  std::vector<float>& values) {
  values.resize(shapes.size());
  std::vector<Pending> reads;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    const auto size = shapes.begin(layer + 1) - shapes.begin(layer);
    reads.push_back(layers[layer].pull_async(0, std::span(values).subspan(shapes.begin(layer), size)));
  }
  for (Pending& read : reads) read.wait();
}

DeviceSpan<float> layer_span(const GpuNetwork& gpu, const DeviceArray<float>& all, std::size_t layer) {
  const Layers& shapes = gpu.network.layers();
  return all.span().subspan(shapes.begin(layer), shapes.begin(layer + 1) - shapes.begin(layer));
}

/// Pulls all layers into `gpu.values`.
void pull_to_gpu(const GpuNetwork& gpu, const std::vector<Variable<float>>& layers) {
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    layers[layer].pull(gpu.stream, 0, layer_span(gpu, gpu.values, layer));
  }
}

/// Loss and gradient of a replica's part of a batch.
struct ReplicaGradient {
  double log_loss = 0;
  std::vector<float> gradient = {};
};

ReplicaGradient compute(Network& network, const Images& images, std::span<const std::uint32_t> examples,
                        std::span<const float> values, double scale, double l2) {
  ReplicaGradient part{0, std::vector<float>(values.size())};
  if (examples.empty()) return part;
  network.clear();
  for (const std::uint32_t i : examples) network.add(images.image(i), images.labels[i]);
  const std::span<const float> logits = network.forward(values);
  const std::size_t classes = logits.size() / examples.size();
  Scores scores;
  for (std::size_t i = 0; i < examples.size(); ++i) {
    scores.add(logits.subspan(i * classes, classes), network.labels()[i]);
  }
  part.log_loss = scores.log_loss_sum;
  network.backward(values, scale, l2, part.gradient);
  return part;
}

}  // namespace

const Images& ImageWorkerState::share(Part part, std::int64_t share, std::int64_t shares) {
  const auto [at, inserted] = files_.try_emplace({part, share});
  if (inserted) {
    const auto& images = input_.images.of(part);
    const auto& labels = input_.labels.of(part);
    try {
      at->second = read_images({{images.begin(), images.end()}, {labels.begin(), labels.end()}}, share,
                               shares, split_of(part, input_.images));
    } catch (...) {
      files_.erase(at);
      throw;
    }
  }
  return at->second;
}

std::vector<Network>& ImageWorkerState::networks(const std::vector<std::int64_t>& widths) {
  const auto replicas = static_cast<std::size_t>(get_replicas().num_replicas_in_sync());
  while (networks_.size() < replicas) networks_.emplace_back(Layers(widths));
  return networks_;
}

GpuNetwork::GpuNetwork(const Layers& layers)
    : stream(assigned_gpu()),
      network(layers, stream.implementation()),
      values(stream.device(), layers.size()),
      gradient(stream.device(), layers.size()) {}

GpuNetwork* ImageWorkerState::gpu(const std::vector<std::int64_t>& widths) {
  if (input_.on_gpu && !gpu_) gpu_ = std::make_unique<GpuNetwork>(Layers(widths));
  return gpu_.get();
}

ImageWorkerState make_image_worker_state(ImageInput input) { return ImageWorkerState(std::move(input)); }

namespace {

/// Throws Error(invalid_argument) if the images of --NAME do not fit those of --data.
void check_fits(const Images& images, const Images& train, std::string_view name) {
  if (images.pixels != train.pixels) {
    throw Error(Code::invalid_argument,
                fmt::format("the images of --{} have {} pixels, expected {} as in --data", name,
                            images.pixels, train.pixels));
  }
  if (images.classes > train.classes) {
    throw Error(Code::invalid_argument,
                fmt::format("--{}-labels has the label {}, expected at most {}, the largest of --labels",
                            name, images.classes - 1, train.classes - 1));
  }
}

}  // namespace

DataSizes load_images(PerWorker<ImageWorkerState> state, Shares shares) {
  DataSizes sizes;
  for (const std::int64_t share : shares.assigned) {
    const Images& train = state->share(Part::train, share, shares.total_count);
    sizes = {.train = train.total, .width = train.pixels, .classes = train.classes};
    const auto load = [&](Part part) {
      if (!state->has(part)) return std::int64_t{0};
      const Images& images = state->share(part, share, shares.total_count);
      check_fits(images, train, to_string(part));
      return images.total;
    };
    sizes.valid = load(Part::valid);
    sizes.test = load(Part::test);
  }
  return sizes;
}

namespace {

TrainResult train_on_gpu(ImageWorkerState& state, GpuNetwork& gpu, const TrainTask& task,
                         const UpdateGroup& group, const std::vector<Variable<float>>& layers) {
  const Layers& shapes = gpu.network.layers();
  TrainResult result;
  (void)gpu.network.take_loss();  // discards the loss of an epoch that failed
  run_epoch(task, group, [&](std::int64_t share, std::span<const std::uint32_t> examples, double scale) {
    const Images& images = state.share(Part::train, share, task.shares.total_count);
    pull_to_gpu(gpu, layers);
    gpu.network.clear(examples.size());
    for (const std::uint32_t i : examples) gpu.network.add(images.image(i), images.labels[i]);
    gpu.network.compute(gpu.values.data(), scale, state.l2(), gpu.gradient.data());
    for (std::size_t layer = 0; layer < layers.size(); ++layer) {
      layers[layer].push_dense(gpu.stream, layer_span(gpu, gpu.gradient, layer));
    }
    if (state.l2() > 0) {
      const std::vector<float> values = to_host(gpu.stream, gpu.values.span());
      result.penalty += state.l2() / 2 * shapes.squares(values) * static_cast<double>(examples.size());
    }
    result.examples += static_cast<std::int64_t>(examples.size());
  });
  result.log_loss = gpu.network.take_loss();
  return result;
}

}  // namespace

TrainResult train_images(PerWorker<ImageWorkerState> state, TrainTask task, UpdateGroup group,
                         std::vector<std::int64_t> widths, std::vector<Variable<float>> layers) {
  if (GpuNetwork* gpu = state->gpu(widths)) return train_on_gpu(*state, *gpu, task, group, layers);
  std::vector<Network>& networks = state->networks(widths);
  const Layers shapes(widths);
  Replicas replicas = get_replicas();
  const auto parts = static_cast<std::size_t>(replicas.num_replicas_in_sync());
  const double l2 = state->l2();
  TrainResult result;
  run_epoch(task, group, [&](std::int64_t share, std::span<const std::uint32_t> examples, double scale) {
    const Images& images = state->share(Part::train, share, task.shares.total_count);
    pull_to_host(shapes, layers, state->values);
    const auto computed = replicas.run([&](ReplicaContext& replica) {
      const auto number = static_cast<std::size_t>(replica.replica_id_in_sync_group());
      const std::size_t first = examples.size() * number / parts;
      const std::size_t end = examples.size() * (number + 1) / parts;
      return compute(networks[number], images, examples.subspan(first, end - first), state->values, scale,
                     l2);
    });
    const ReplicaGradient sum = replicas.reduce(ReduceOp::SUM, computed);
    for (std::size_t layer = 0; layer < layers.size(); ++layer) {
      const auto size = shapes.begin(layer + 1) - shapes.begin(layer);
      layers[layer].push_dense(std::span(sum.gradient).subspan(shapes.begin(layer), size));
    }
    result.log_loss += sum.log_loss;
    if (l2 > 0) {
      result.penalty += l2 / 2 * shapes.squares(state->values) * static_cast<double>(examples.size());
    }
    result.examples += static_cast<std::int64_t>(examples.size());
  });
  return result;
}

namespace {

Scores evaluate_on_gpu(const Images& images, GpuNetwork& gpu, const EvaluateTask& task,
                       const std::vector<Variable<float>>& layers) {
  (void)gpu.network.take_scores();  // discards the scores of an evaluation that failed
  pull_to_gpu(gpu, layers);
  for (std::int64_t first = 0; first < task.count; first += kEvaluationImages) {
    const std::int64_t end = std::min(task.count, first + kEvaluationImages);
    gpu.network.clear(static_cast<std::size_t>(end - first));
    for (std::int64_t i = first; i < end; ++i) {
      const auto at = static_cast<std::size_t>(task.first + i);
      gpu.network.add(images.image(at), images.labels[at]);
    }
    gpu.network.score(gpu.values.data());
  }
  return gpu.network.take_scores();
}

}  // namespace

Scores evaluate_images(PerWorker<ImageWorkerState> state, EvaluateTask task, std::vector<std::int64_t> widths,
                       std::vector<Variable<float>> layers) {
  const Images& images = state->share(task.part, task.share, task.total_shares);
  if (GpuNetwork* gpu = state->gpu(widths)) {
    try {
      return evaluate_on_gpu(images, *gpu, task, layers);
    } catch (const Error& error) {
      if (error.code() != Code::resource_exhausted) throw;
      if (!std::exchange(state->evaluation_warned, true)) {
        log::warn("cannot evaluate batches of {} images on the GPU: {}; evaluating on the CPU instead",
                  kEvaluationImages, error.what());
      }
    }
  }
  Network& network = state->networks(widths).front();
  pull_to_host(network.layers(), layers, state->values);
  const auto classes = static_cast<std::size_t>(widths.back());
  Scores scores;
  for (std::int64_t first = 0; first < task.count; first += kEvaluationImages) {
    network.clear();
    const std::int64_t end = std::min(task.count, first + kEvaluationImages);
    for (std::int64_t i = first; i < end; ++i) {
      const auto at = static_cast<std::size_t>(task.first + i);
      network.add(images.image(at), images.labels[at]);
    }
    const std::span<const float> logits = network.forward(state->values);
    for (std::size_t i = 0; i < network.batch(); ++i) {
      scores.add(logits.subspan(i * classes, classes), network.labels()[i]);
    }
  }
  return scores;
}

}  // namespace capstan::train
