// kge_device_host_test.cpp -- a GPU's step gives the host's results.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/device/gpu_to_test.hpp"
#include "train/kge/device_step.hpp"
#include "train/kge/step.hpp"

namespace capstan::kge {
namespace {

class KgeDeviceAndHost : public device::OnGpu {
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

TEST_F(KgeDeviceAndHost, Agree) {
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
      const auto there = to_gpu(entities), there_too = to_gpu(relations);
      const device::Values<float> gradients(0, entities.size()), relation_gradients(0, relations.size());
      step.compute(plan, {there.data(), there_too.data(), gradients.data(), relation_gradients.data()});
      const Loss loss_of_gpu = step.take_loss();
      EXPECT_EQ(loss_of_gpu.count, loss.count);
      EXPECT_NEAR(loss_of_gpu.sum, loss.sum, 1e-5 * loss.sum);
      compare(host.entity_gradients(), to_host(gradients));
      compare(host.relation_gradients(), to_host(relation_gradients));
    }
  }
}

}  // namespace
}  // namespace capstan::kge
