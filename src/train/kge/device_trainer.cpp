// device_trainer.cpp -- training on a GPU. While the GPU computes a batch, the host plans the next one, and
// may look up its rows.
#include <algorithm>
#include <array>
#include <span>

#include "capstan/device.hpp"
#include "train/kge/device_step.hpp"
#include "train/kge/trainer.hpp"

namespace capstan::kge {
namespace {

/// A batch in flight: its plan, and its rows and gradients in the GPU's memory.
class InFlightBatch {
 public:
  InFlightBatch(const StepOptions& options, int device)
      : plan_(options), dim_(static_cast<std::size_t>(options.dim)), looked_up_(device), computed_(device) {}

  void draw(std::span<const Triple> batch, std::uint64_t seed, std::uint64_t number) {
    plan_.draw(batch, seed, number);
  }

  void look_up(const DeviceStream& stream, const Variable<float>& entities,
               const Variable<float>& relations) {
    stream.implementation().begin_after(computed_);  // for the previous batch in these buffers
    const auto look_up_table = [&](const Variable<float>& table, std::span<const std::int64_t> ids,
                                   std::size_t max_rows, TableBuffers& buffers) {
      if (buffers.rows.size() < max_rows * dim_) {
        buffers = {};
        buffers = {gpu::Values<float>(stream.device(), max_rows * dim_),
                   gpu::Values<float>(stream.device(), max_rows * dim_)};
      }
      table.lookup(stream, ids, DeviceSpan(buffers.rows.data(), ids.size() * dim_));
    };
    const BatchPlan& batch = plan_.batch();
    look_up_table(entities, batch.entity_ids(), batch.entity_positions().size(), entities_);
    look_up_table(relations, batch.relation_ids(), batch.relation_positions().size(), relations_);
    looked_up_.record(stream.implementation());
  }

  void compute(const DeviceStream& stream, DeviceStep& step) {
    stream.implementation().begin_after(looked_up_);
    step.compute(plan_, {entities_.rows.data(), relations_.rows.data(), entities_.gradients.data(),
                         relations_.gradients.data()});
    computed_.record(stream.implementation());
  }

  /// Enqueues the push after the computation of the gradients.
  void push(const DeviceStream& stream, const Variable<float>& entities,
            const Variable<float>& relations) const {
    stream.implementation().begin_after(computed_);
    const auto push_table = [&](const Variable<float>& table, std::span<const std::int64_t> ids,
                                const TableBuffers& buffers) {
      table.push(stream, ids, DeviceSpan(buffers.gradients.data(), ids.size() * dim_));
    };
    push_table(entities, plan_.batch().entity_ids(), entities_);
    push_table(relations, plan_.batch().relation_ids(), relations_);
  }

 private:
  struct TableBuffers {
    gpu::Values<float> rows, gradients;
  };
  DevicePlan plan_;
  std::size_t dim_;
  TableBuffers entities_, relations_;
  gpu::Event looked_up_, computed_;
};

class DeviceTrainer final : public Trainer {
 public:
  DeviceTrainer(const TrainerOptions& options, int device)
      : lookup_stream_(device),
        compute_stream_(device),
        push_stream_(device),
        step_(options.step, compute_stream_.implementation()),
        batches_{InFlightBatch(options.step, device), InFlightBatch(options.step, device)},
        looks_ahead_(options.looks_ahead) {}

  SliceResult train(const Slice& slice, const Table& entity_table, const Table& relation_table) override {
    const Variable<float>& entities = entity_table.as<float>();
    const Variable<float>& relations = relation_table.as<float>();
    (void)step_.take_loss();  // discards the loss of a slice that failed
    const std::span<const Triple> triples(slice.triples);
    const auto batch_size = static_cast<std::size_t>(slice.batch);
    std::uint64_t number = slice.first_batch;
    const InFlightBatch* pending = nullptr;  // its gradients are not pushed yet
    const auto push_pending = [&] {
      if (pending != nullptr) pending->push(push_stream_, entities, relations);
      pending = nullptr;
    };
    for (std::size_t first = 0; first < triples.size(); first += batch_size, ++number) {
      InFlightBatch& current = batches_[number % batches_.size()];
      current.draw(triples.subspan(first, std::min(batch_size, triples.size() - first)), slice.seed, number);
      if (!looks_ahead_) push_pending();
      current.look_up(lookup_stream_, entities, relations);
      current.compute(compute_stream_, step_);
      push_pending();
      pending = &current;
    }
    push_pending();
    const Loss loss = step_.take_loss();
    return {loss.sum, loss.count, static_cast<std::int64_t>(triples.size())};
  }

 private:
  DeviceStream lookup_stream_, compute_stream_, push_stream_;
  DeviceStep step_;
  std::array<InFlightBatch, 2> batches_;
  bool looks_ahead_;
};

}  // namespace

std::unique_ptr<Trainer> make_device_trainer(const TrainerOptions& options, int device) {
  return std::make_unique<DeviceTrainer>(options, device);
}

}  // namespace capstan::kge
