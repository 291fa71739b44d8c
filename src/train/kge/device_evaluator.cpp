// device_evaluator.cpp -- evaluation on a GPU, see evaluator.hpp.
#include <optional>

#include "base/log.hpp"
#include "capstan/device.hpp"
#include "train/kge/device_ranking.hpp"
#include "train/kge/evaluator.hpp"

namespace capstan::kge {
namespace {

class DeviceEvaluator final : public GpuEvaluator {
 public:
  DeviceEvaluator(const RankerOptions& options, const TrueAnswers& answers, int device)
      : stream_(device), ranker_(options, answers, stream_.implementation()) {}

  Metrics rank(std::span<const Triple> triples, std::int64_t evaluation, const Table& entity_table,
               const Table& relation_table) override {
    const Variable<float>& entities = entity_table.as<float>();
    const Variable<float>& relations = relation_table.as<float>();
    if (table_evaluation_ != evaluation) {
      table_evaluation_.reset();
      float* const table = ranker_.make_table();
      entities.pull(stream_, 0, DeviceSpan(table, entities.rows() * entities.width()));
      ranker_.compute_norms();
      table_evaluation_ = evaluation;
      log::debug("GPU {} ranks {} entities of {} floats", stream_.device(), entities.rows(),
                 entities.width());
    }
    ranker_.plan(triples);
    const std::size_t size = ranker_.relation_ids().size() * relations.width();
    gpu::grow(relation_rows_, stream_.device(), size);
    relations.lookup(stream_, ranker_.relation_ids(), DeviceSpan(relation_rows_.data(), size));
    return ranker_.rank(relation_rows_.data());
  }

  void end() override {
    table_evaluation_.reset();
    ranker_.drop_table();
  }

 private:
  DeviceStream stream_;
  DeviceRanker ranker_;
  std::optional<std::int64_t> table_evaluation_;  // evaluation that loaded the table
  gpu::Values<float> relation_rows_;
};

}  // namespace

std::unique_ptr<GpuEvaluator> make_gpu_evaluator(const RankerOptions& options, const TrueAnswers& answers,
                                                 int device) {
  return std::make_unique<DeviceEvaluator>(options, answers, device);
}

}  // namespace capstan::kge
