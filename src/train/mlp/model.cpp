// model.cpp -- mlp on the coordinator: a variable per layer.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "train/mlp/closures.hpp"
#include "train/model.hpp"

namespace capstan::train {
namespace {

class ImageModel final : public Model {
 public:
  ImageModel(const ModelOptions& options, ClusterCoordinator& coordinator)
      : options_(options),
        coordinator_(coordinator),
        group_("model", synchronization_of(options)),
        worker_state_(coordinator.create_per_worker_resource<&make_image_worker_state>(
            ImageInput{options.files(), options.label_files(), options.l2, options.on_gpu})) {}

  RemoteValue<DataSizes> load(int worker, const Shares& shares) override {
    return coordinator_.schedule_on<&load_images>(worker, worker_state_, shares);
  }
  void create(const DataSizes& sizes) override {
    widths_ = options_.hidden;
    widths_.insert(widths_.begin(), sizes.width);
    widths_.push_back(sizes.classes);
    const Layers shapes(widths_);
    for (std::size_t layer = 0; layer < shapes.count(); ++layer) {
      layers_.emplace_back(fmt::format("layer{}", layer + 1), shapes.initial_values(layer, options_.seed),
                           VariableOptions{.optimizer = options_.optimizer, .group = group_});
    }
  }
  RemoteValue<void> prepare(int, const Shares&) override {
    throw Error(Code::internal, "prepare() called for mlp, expected no call: needs_preparation() is false");
  }
  RemoteValue<TrainResult> train(int worker, const TrainTask& task) override {
    return coordinator_.schedule_on<&train_images>(worker, worker_state_, task, group_, widths_, layers_);
  }
  RemoteValue<Scores> evaluate(int worker, const EvaluateTask& task) override {
    return coordinator_.schedule_on<&evaluate_images>(worker, worker_state_, task, widths_, layers_);
  }
  double penalty() const override {
    if (options_.l2 == 0) return 0;
    std::vector<float> values;
    for (const auto& layer : layers_) {
      const Buffer<float> more = layer.pull();
      values.insert(values.end(), more.begin(), more.end());
    }
    return options_.l2 / 2 * Layers(widths_).squares(values);
  }
  void restart_group() const override { group_.restart(); }
  Identity identity() const override { return {{"layers of", fmt::format("{}", fmt::join(widths_, ","))}}; }

 private:
  ModelOptions options_;
  ClusterCoordinator& coordinator_;
  UpdateGroup group_;
  PerWorker<ImageWorkerState> worker_state_;
  std::vector<std::int64_t> widths_;
  std::vector<Variable<float>> layers_;
};

}  // namespace

std::unique_ptr<Model> make_image_model(const ModelOptions& options, ClusterCoordinator& coordinator) {
  return std::make_unique<ImageModel>(options, coordinator);
}

}  // namespace capstan::train
