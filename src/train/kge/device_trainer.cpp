// device_trainer.cpp -- training by a GPU. The host plans a batch, and may look its rows up, while the GPU
// computes the one before it.
#include <algorithm>
#include <array>
#include <span>

#include "capstan/device.hpp"
#include "train/kge/device_step.hpp"
#include "train/kge/trainer.hpp"

namespace capstan::kge {
namespace {

/// A batch under way: its plan, and in the GPU's memory its rows and gradients.
class Lane {
 public:
  Lane(const StepOptions& options, int device)
      : plan_(options), dim_(static_cast<std::size_t>(options.dim)), looked_up_(device), computed_(device) {}

  void draw(std::span<const Triple> batch, std::uint64_t seed, std::uint64_t number) {
    plan_.draw(batch, seed, number);
  }

  void look_up(const DeviceStream& in, const Variable<float>& entities, const Variable<float>& relations) {
    in.implementation().begin_after(computed_);  // an earlier batch of this lane
    const auto look = [&](const Variable<float>& table, std::span<const std::int64_t> ids, std::size_t most,
                          Side& side) {
      if (side.rows.size() < most * dim_) {
        side = {};
        side = {gpu::Values<float>(in.device(), most * dim_), gpu::Values<float>(in.device(), most * dim_)};
      }
      table.lookup(in, ids, DeviceSpan(side.rows.data(), ids.size() * dim_));
    };
    const BatchPlan& batch = plan_.batch();
    look(entities, batch.entity_ids(), batch.entity_places().size(), entities_);
    look(relations, batch.relation_ids(), batch.relation_places().size(), relations_);
    looked_up_.record(in.implementation());
  }

  void compute(const DeviceStream& work, DeviceStep& step) {
    work.implementation().begin_after(looked_up_);
    step.compute(plan_, {entities_.rows.data(), relations_.rows.data(), entities_.gradients.data(),
                         relations_.gradients.data()});
    computed_.record(work.implementation());
  }

  /// Waits for the gradients.
  void push(const DeviceStream& out, const Variable<float>& entities,
            const Variable<float>& relations) const {
    out.implementation().begin_after(computed_);
    const auto push_side = [&](const Variable<float>& table, std::span<const std::int64_t> ids,
                               const Side& side) {
      table.push(out, ids, DeviceSpan(side.gradients.data(), ids.size() * dim_));
    };
    push_side(entities, plan_.batch().entity_ids(), entities_);
    push_side(relations, plan_.batch().relation_ids(), relations_);
  }

 private:
  struct Side {
    gpu::Values<float> rows, gradients;
  };
  DevicePlan plan_;
  std::size_t dim_;
  Side entities_, relations_;
  gpu::Event looked_up_, computed_;
};

class DeviceTrainer final : public Trainer {
 public:
  DeviceTrainer(const TrainerOptions& options, int device)
      : in_(device),
        work_(device),
        out_(device),
        step_(options.step, work_.implementation()),
        lanes_{Lane(options.step, device), Lane(options.step, device)},
        looks_ahead_(options.looks_ahead) {}

  SliceResult train(const Slice& slice, const Variable<float>& entities,
                    const Variable<float>& relations) override {
    (void)step_.take_loss();  // of a slice that an error ended
    const std::span<const Triple> triples(slice.triples);
    const auto batch_size = static_cast<std::size_t>(slice.batch);
    std::uint64_t number = slice.first_batch;
    const Lane* before = nullptr;  // whose gradients are still to be pushed
    const auto push_before = [&] {
      if (before != nullptr) before->push(out_, entities, relations);
      before = nullptr;
    };
    for (std::size_t first = 0; first < triples.size(); first += batch_size, ++number) {
      Lane& lane = lanes_[number % lanes_.size()];
      lane.draw(triples.subspan(first, std::min(batch_size, triples.size() - first)), slice.seed, number);
      if (!looks_ahead_) push_before();
      lane.look_up(in_, entities, relations);
      lane.compute(work_, step_);
      push_before();
      before = &lane;
    }
    push_before();
    const Loss loss = step_.take_loss();
    return {loss.sum, loss.count, static_cast<std::int64_t>(triples.size())};
  }

 private:
  DeviceStream in_, work_, out_;
  DeviceStep step_;
  std::array<Lane, 2> lanes_;
  bool looks_ahead_;
};

}  // namespace

std::unique_ptr<Trainer> make_device_trainer(const TrainerOptions& options, int device) {
  return std::make_unique<DeviceTrainer>(options, device);
}

}  // namespace capstan::kge
