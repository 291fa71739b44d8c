// kge_device_host_test.cpp -- compares steps and ranks on a GPU with those on the host.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/gpu/gpu_to_test.hpp"
#include "tests/train/plain_kge_ranking.hpp"
#include "train/kge/device_ranking.hpp"
#include "train/kge/device_step.hpp"
#include "train/kge/ranking.hpp"
#include "train/kge/step.hpp"

namespace capstan::kge {
namespace {

class KgeDeviceAndHost : public gpu::OnGpu {
 protected:
  static std::vector<float> random_rows(std::size_t size, std::mt19937& random) {
    std::normal_distribution<float> normal(0, 0.5F);
    std::vector<float> rows(size);
    std::ranges::generate(rows, [&] { return normal(random); });
    return rows;
  }

  static void compare(std::span<const float> host, const std::vector<float>& gpu) {
    ASSERT_EQ(host.size(), gpu.size());
    float largest = 0;
    for (const float value : host) largest = std::max(largest, std::abs(value));
    for (std::size_t i = 0; i < gpu.size(); ++i) ASSERT_NEAR(host[i], gpu[i], 1e-5F * largest) << i;
  }
};

TEST_F(KgeDeviceAndHost, StepsAgree) {
  std::mt19937 random(1);
  std::vector<Triple> batch(150);
  for (Triple& triple : batch) {
    triple = {static_cast<std::int32_t>(random() % 400), static_cast<std::int32_t>(random() % 3),
              static_cast<std::int32_t>(random() % 400)};
  }
  for (const ModelKind model : {ModelKind::transe, ModelKind::distmult, ModelKind::complex}) {
    for (const int dim : {64, 30}) {
      SCOPED_TRACE(std::string(to_string(model)) + std::to_string(dim));
      const StepOptions options{.model = model,
                                .dim = dim,
                                .negatives = 128,
                                .n3 = model == ModelKind::transe ? 0 : 0.1F,
                                .entities = 400,
                                .relations = 3};
      Step host(options);
      host.plan(batch, 3, 8);
      const auto width = static_cast<std::size_t>(dim);
      const auto entities = random_rows(host.entity_ids().size() * width, random);
      const auto relations = random_rows(host.relation_ids().size() * width, random);
      const Loss loss = host.compute(entities, relations);

      DeviceStep step(options, *stream_);
      DevicePlan plan(options);
      plan.draw(batch, 3, 8);
      const auto device_entities = to_gpu(entities), device_relations = to_gpu(relations);
      const gpu::Values<float> gradients(0, entities.size()), relation_gradients(0, relations.size());
      step.compute(plan, {device_entities.data(), device_relations.data(), gradients.data(),
                          relation_gradients.data()});
      const Loss gpu_loss = step.take_loss();
      EXPECT_EQ(gpu_loss.count, loss.count);
      EXPECT_NEAR(gpu_loss.sum, loss.sum, 1e-5 * loss.sum);
      compare(host.entity_gradients(), to_host(gradients));
      compare(host.relation_gradients(), to_host(relation_gradients));
    }
  }
}

/// Sum of the two reciprocal ranks of each triple; each triple is a separate slice.
std::vector<double> mrr_sums_of_host(const PlainTables& tables, const std::vector<Triple>& test,
                                     const TrueAnswers& answers) {
  Ranker ranker({tables.model, static_cast<int>(tables.dim), tables.count, tables.relation_count}, answers);
  const auto gather = [&](const std::vector<float>& table, std::span<const std::int64_t> ids) {
    std::vector<float> rows;
    for (const std::int64_t id : ids) {
      const auto begin = table.begin() + id * static_cast<std::ptrdiff_t>(tables.dim);
      rows.insert(rows.end(), begin, begin + static_cast<std::ptrdiff_t>(tables.dim));
    }
    return rows;
  };
  std::vector<double> sums;
  for (const Triple& triple : test) {
    ranker.plan(std::span(&triple, 1));
    ranker.begin(gather(tables.entities, ranker.entity_ids()),
                 gather(tables.relations, ranker.relation_ids()));
    ranker.add_block(0, tables.entities);
    sums.push_back(ranker.finish().mrr_sum);
  }
  return sums;
}

TEST_F(KgeDeviceAndHost, RanksAgree) {
  for (const ModelKind model : {ModelKind::transe, ModelKind::distmult, ModelKind::complex}) {
    for (const bool exact : {false, true}) {
      SCOPED_TRACE(std::string(to_string(model)) + (exact ? ", exact" : ""));
      const std::vector<Triple> all = random_triples(1500, 3000, 4, 2);
      const std::vector<Triple> test(all.begin(), all.begin() + 100);
      PlainTables tables(model, 32, 3000, 4);
      exact ? tables.fill_exact(3) : tables.fill_normal(3);
      // Every fifth entity is a copy of the previous one.
      for (std::ptrdiff_t id = 5; id < 3000; id += 5) {
        std::copy_n(tables.entities.begin() + (id - 1) * 32, 32, tables.entities.begin() + id * 32);
      }
      const TrueAnswers answers(all, 4);
      const std::vector<double> host = mrr_sums_of_host(tables, test, answers);

      DeviceRanker ranker({model, 32, 3000, 4}, answers, *stream_);
      gpu::copy(*stream_, ranker.make_table(), tables.entities.data(),
                tables.entities.size() * sizeof(float));
      ranker.compute_norms();
      ranker.plan(test);
      ASSERT_EQ(ranker.relation_ids().size(), 8U);
      const auto relations = to_gpu(tables.relations);
      const double mrr = ranker.rank(relations.data()).mrr();
      const std::vector<double> ranks = ranker.ranks();
      double sum = 0;
      int differ = 0;
      for (std::size_t i = 0; i < test.size(); ++i) {
        sum += host[i];
        differ += 1 / ranks[i] + 1 / ranks[test.size() + i] != host[i] ? 1 : 0;
      }
      EXPECT_NEAR(mrr, sum / 200, 1e-3);
      // Without fused multiply-add on the host, ComplEx's queries differ in the last bits.
      EXPECT_LE(differ, !exact && model == ModelKind::complex ? 1 : 0);
    }
  }
}

}  // namespace
}  // namespace capstan::kge
