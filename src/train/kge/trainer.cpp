// trainer.cpp -- training on CPU cores, and the choice between CPU and GPU.
#include "train/kge/trainer.hpp"

#include <algorithm>
#include <span>

#include "train/assigned_gpu.hpp"
#include "train/kge/step.hpp"

namespace capstan::kge {
namespace {

class HostTrainer final : public Trainer {
 public:
  explicit HostTrainer(const StepOptions& options) : step_(options) {}

  SliceResult train(const Slice& slice, const Table& entities, const Table& relations) override {
    const std::span<const Triple> triples(slice.triples);
    const auto batch_size = static_cast<std::size_t>(slice.batch);
    SliceResult result;
    std::uint64_t number = slice.first_batch;
    for (std::size_t first = 0; first < triples.size(); first += batch_size) {
      const auto batch = triples.subspan(first, std::min(batch_size, triples.size() - first));
      step_.plan(batch, slice.seed, number++);
      entity_rows_.resize(step_.entity_ids().size() * entities.width());
      relation_rows_.resize(step_.relation_ids().size() * relations.width());
      entities.lookup(step_.entity_ids(), entity_rows_);
      relations.lookup(step_.relation_ids(), relation_rows_);
      const Loss loss = step_.compute(entity_rows_, relation_rows_);
      entities.push(step_.entity_ids(), step_.entity_gradients());
      relations.push(step_.relation_ids(), step_.relation_gradients());
      result.loss_sum += loss.sum;
      result.queries += loss.count;
      result.triples += static_cast<std::int64_t>(batch.size());
    }
    return result;
  }

 private:
  Step step_;
  std::vector<float> entity_rows_;
  std::vector<float> relation_rows_;
};

}  // namespace

std::unique_ptr<Trainer> make_trainer(TrainerOptions options) {
  if (!options.on_gpu) return std::make_unique<HostTrainer>(options.step);
  return make_device_trainer(options, train::assigned_gpu());
}

}  // namespace capstan::kge
