// kge_case.cpp -- see kge_case.hpp.
#include "perf/gpu/kge_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/train/plain_kge_step.hpp"

namespace capstan::perf {
namespace {

constexpr std::uint64_t kSeed = 1;

kge::StepOptions options_of(kge::ModelKind model) {
  const kge::ModelDefaults& defaults = kge::defaults_of(model);
  const bool small = gpu::are_stand_ins();
  return {.model = model,
          .dim = small ? 32 : defaults.dim,
          .negatives = small ? 64 : defaults.negatives,
          .n3 = defaults.n3,
          .entities = small ? 500 : 40943,
          .relations = 11};
}

std::vector<kge::Triple> random_batch(const kge::StepOptions& options) {
  std::mt19937_64 random(kSeed);
  const auto below = [&](std::int64_t limit) {
    return static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(limit));
  };
  const int size = gpu::are_stand_ins() ? 32 : kge::defaults_of(options.model).batch;
  std::vector<kge::Triple> batch(static_cast<std::size_t>(size));
  for (kge::Triple& triple : batch) {
    triple = {below(options.entities), below(options.relations), below(options.entities)};
  }
  return batch;
}

std::vector<float> random_table(std::int64_t rows, int dim, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> value(-0.3F, 0.3F);
  std::vector<float> table(static_cast<std::size_t>(rows * dim));
  std::ranges::generate(table, [&] { return value(random); });
  return table;
}

}  // namespace

KgeCase::KgeCase(const gpu::Stream& stream, kge::ModelKind model)
    : stream_(stream),
      options_(options_of(model)),
      batch_(random_batch(options_)),
      step_(options_, stream),
      plans_{kge::DevicePlan(options_), kge::DevicePlan(options_)},
      host_entities_(random_table(options_.entities, options_.dim, 1)),
      host_relations_(random_table(2 * options_.relations, options_.dim, 2)) {
  const auto dim = static_cast<std::size_t>(options_.dim);
  const std::size_t uses = 2 * batch_.size() + static_cast<std::size_t>(options_.negatives);
  for (auto* buffer : {&entities_, &entity_gradients_})
    *buffer = gpu::Values<float>(stream.device(), uses * dim);
  for (auto* buffer : {&relations_, &relation_gradients_}) {
    *buffer = gpu::Values<float>(stream.device(), host_relations_.size());
  }
}

std::string KgeCase::name() const {
  return fmt::format("kge step, {}, {} floats, {} negatives", kge::to_string(options_.model), options_.dim,
                     options_.negatives);
}

double KgeCase::flops() const noexcept { return 3 * 2.0 * 2 * triples() * options_.negatives * options_.dim; }

kge::DeviceRows KgeCase::rows() const {
  return {entities_.data(), relations_.data(), entity_gradients_.data(), relation_gradients_.data()};
}

void KgeCase::step(int number) {
  kge::DevicePlan& plan = plans_[static_cast<std::size_t>(number) % 2];
  plan.draw(batch_, kSeed, static_cast<std::uint64_t>(number));
  step_.compute(plan, rows());
}

bool KgeCase::is_correct() {
  const auto dim = static_cast<std::size_t>(options_.dim);
  kge::DevicePlan& plan = plans_[0];
  plan.draw(batch_, kSeed, 0);
  const auto to_gpu = [&](const std::vector<float>& table, std::span<const std::int64_t> ids,
                          const gpu::Values<float>& to) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      gpu::copy(stream_, to.data() + i * dim, &table[static_cast<std::size_t>(ids[i]) * dim],
                dim * sizeof(float));
    }
  };
  to_gpu(host_entities_, plan.batch().entity_ids(), entities_);
  to_gpu(host_relations_, plan.batch().relation_ids(), relations_);
  (void)step_.take_loss();
  step_.compute(plan, rows());
  const kge::Loss loss = step_.take_loss();

  kge::PlainStep plain(options_, {host_entities_.begin(), host_entities_.end()},
                       {host_relations_.begin(), host_relations_.end()});
  plain.run(batch_, kSeed, 0);
  bool correct = std::abs(loss.sum - plain.loss) <= 1e-5 * plain.loss;
  const auto compare = [&](const gpu::Values<float>& there, std::span<const std::int64_t> ids,
                           const std::vector<double>& expected) {
    std::vector<float> got(ids.size() * dim);
    gpu::copy(stream_, got.data(), there.data(), got.size() * sizeof(float));
    stream_.wait();
    double largest = 0;
    for (const double value : expected) largest = std::max(largest, std::abs(value));
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double value = expected[static_cast<std::size_t>(ids[i / dim]) * dim + i % dim];
      // A NaN fails the comparison.
      correct = correct && std::abs(static_cast<double>(got[i]) - value) <= 1e-5 * largest;
    }
  };
  compare(entity_gradients_, plan.batch().entity_ids(), plain.entity_gradients);
  compare(relation_gradients_, plan.batch().relation_ids(), plain.relation_gradients);
  return correct;
}

}  // namespace capstan::perf
