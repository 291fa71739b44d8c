// options.cpp -- optimizers, learning-rate schedules, initializers and partitioners. Their names, parameters
// and defaults are those of the C++ API.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/variant.h>

#include <optional>
#include <variant>

#include "bindings.hpp"

namespace capstan::python {
namespace {

using nb::literals::operator""_a;

/// A number or a schedule. A variant, so that the type stubs of the package show both.
using Rate = std::variant<double, LearningRate>;

LearningRate learning_rate(const Rate& rate) {
  return std::visit([](const auto& value) { return LearningRate(value); }, rate);
}
Rate constant(const LearningRate& rate) { return rate.initial; }

void bind_schedules(nb::module_ module) {
  const schedules::ExponentialDecay exponential;
  module.def(
      "ExponentialDecay",
      [](double rate, double steps, double decay, bool staircase) -> LearningRate {
        return schedules::ExponentialDecay{rate, steps, decay, staircase};
      },
      "initial_learning_rate"_a, "decay_steps"_a, "decay_rate"_a, "staircase"_a = exponential.staircase,
      "initial * decay_rate ** (step / decay_steps); with staircase, the exponent is rounded down.");
  module.def(
      "InverseTimeDecay",
      [](double rate, double steps, double decay, bool staircase) -> LearningRate {
        return schedules::InverseTimeDecay{rate, steps, decay, staircase};
      },
      "initial_learning_rate"_a, "decay_steps"_a, "decay_rate"_a, "staircase"_a = false,
      "initial / (1 + decay_rate * step / decay_steps).");
  const schedules::PolynomialDecay polynomial;
  module.def(
      "PolynomialDecay",
      [](double rate, double steps, double end, double power, bool cycle) -> LearningRate {
        return schedules::PolynomialDecay{rate, steps, end, power, cycle};
      },
      "initial_learning_rate"_a, "decay_steps"_a, "end_learning_rate"_a = polynomial.end_learning_rate,
      "power"_a = polynomial.power, "cycle"_a = polynomial.cycle,
      "Decays from the initial to the end rate in decay_steps, by a power of the remaining fraction.");
  module.def(
      "CosineDecay",
      [](double rate, double steps, double alpha, std::optional<double> target,
         double warmup) -> LearningRate {
        return schedules::CosineDecay{rate, steps, alpha, target, warmup};
      },
      "initial_learning_rate"_a, "decay_steps"_a, "alpha"_a = 0.0, "warmup_target"_a = nb::none(),
      "warmup_steps"_a = 0.0, "Half a cosine wave, down to alpha times the rate, after a linear warm-up.");
  module.def(
      "PiecewiseConstantDecay",
      [](std::vector<double> boundaries, std::vector<double> values) -> LearningRate {
        return schedules::PiecewiseConstantDecay{std::move(boundaries), std::move(values)};
      },
      "boundaries"_a, "values"_a, "values[0] up to step boundaries[0], values[1] up to boundaries[1], ...");
}

void bind_optimizers(nb::module_ module) {
  module.def(
      "SGD", [](const Rate& rate) -> Optimizer { return optimizers::SGD{learning_rate(rate)}; },
      "learning_rate"_a = constant(optimizers::SGD().learning_rate), "w -= learning_rate * g");
  const optimizers::Momentum momentum;
  module.def(
      "Momentum",
      [](const Rate& rate, double factor, bool nesterov) -> Optimizer {
        return optimizers::Momentum{learning_rate(rate), factor, nesterov};
      },
      "learning_rate"_a = constant(momentum.learning_rate), "momentum"_a = momentum.momentum,
      "nesterov"_a = momentum.nesterov, "v = momentum * v - learning_rate * g; w += v");
  const optimizers::Adagrad adagrad;
  module.def(
      "Adagrad",
      [](const Rate& rate, double accumulator, double epsilon) -> Optimizer {
        return optimizers::Adagrad{learning_rate(rate), accumulator, epsilon};
      },
      "learning_rate"_a = constant(adagrad.learning_rate),
      "initial_accumulator_value"_a = adagrad.initial_accumulator, "epsilon"_a = adagrad.epsilon,
      "a += g * g; w -= learning_rate * g / (sqrt(a) + epsilon)");
  const optimizers::RMSProp rmsprop;
  module.def(
      "RMSprop",
      [](const Rate& rate, double rho, double epsilon) -> Optimizer {
        return optimizers::RMSProp{learning_rate(rate), rho, epsilon};
      },
      "learning_rate"_a = constant(rmsprop.learning_rate), "rho"_a = rmsprop.rho,
      "epsilon"_a = rmsprop.epsilon,
      "a = rho * a + (1 - rho) * g * g; w -= learning_rate * g / sqrt(a + epsilon)");
  const optimizers::Adam adam;
  module.def(
      "Adam",
      [](const Rate& rate, double beta1, double beta2, double epsilon) -> Optimizer {
        return optimizers::Adam{learning_rate(rate), beta1, beta2, epsilon};
      },
      "learning_rate"_a = constant(adam.learning_rate), "beta_1"_a = adam.beta1, "beta_2"_a = adam.beta2,
      "epsilon"_a = adam.epsilon, "Kingma, Ba 2015. Rows that a push does not name keep their moments.");
  const optimizers::AdamW adamw;
  module.def(
      "AdamW",
      [](const Rate& rate, double decay, double beta1, double beta2, double epsilon) -> Optimizer {
        return optimizers::AdamW{learning_rate(rate), decay, beta1, beta2, epsilon};
      },
      "learning_rate"_a = constant(adamw.learning_rate), "weight_decay"_a = adamw.weight_decay,
      "beta_1"_a = adamw.beta1, "beta_2"_a = adamw.beta2, "epsilon"_a = adamw.epsilon,
      "w -= learning_rate * weight_decay * w, followed by Adam.");
  const optimizers::FTRL ftrl;
  module.def(
      "Ftrl",
      [](const Rate& rate, double power, double accumulator, double l1, double l2, double shrinkage,
         double beta) -> Optimizer {
        return optimizers::FTRL{learning_rate(rate), power, accumulator, l1, l2, shrinkage, beta};
      },
      "learning_rate"_a = constant(ftrl.learning_rate), "learning_rate_power"_a = ftrl.learning_rate_power,
      "initial_accumulator_value"_a = ftrl.initial_accumulator, "l1_regularization_strength"_a = ftrl.l1,
      "l2_regularization_strength"_a = ftrl.l2, "l2_shrinkage_regularization_strength"_a = ftrl.l2_shrinkage,
      "beta"_a = ftrl.beta, "McMahan et al. 2013, in the form of Keras.");
}

using Seed = std::optional<std::uint64_t>;

void bind_initializers(nb::module_ module) {
  const auto seed = "seed"_a = nb::none();
  module.def("zeros", &initializers::zeros, "All elements are 0.");
  module.def("ones", &initializers::ones, "All elements are 1.");
  module.def("constant", &initializers::constant, "value"_a, "All elements are `value`.");
  module.def(
      "uniform",
      [](double low, double high, Seed seed) {
        return initializers::uniform(low, high, seed.value_or(kSeedFromName));
      },
      "minval"_a = -0.05, "maxval"_a = 0.05, seed,
      "Uniform in [minval, maxval). Element i depends only on the seed and i. Without a seed, the variable's "
      "name gives it.");
  module.def(
      "normal",
      [](double mean, double stddev, Seed seed) {
        return initializers::normal(mean, stddev, seed.value_or(kSeedFromName));
      },
      "mean"_a = 0.0, "stddev"_a = 0.05, seed, "Normally distributed.");
  module.def(
      "truncated_normal",
      [](double mean, double stddev, Seed seed) {
        return initializers::truncated_normal(mean, stddev, seed.value_or(kSeedFromName));
      },
      "mean"_a = 0.0, "stddev"_a = 0.05, seed,
      "Normally distributed; values more than two stddev from the mean are drawn again.");
  module.def(
      "orthogonal",
      [](double gain, Seed seed) { return initializers::orthogonal(gain, seed.value_or(kSeedFromName)); },
      "gain"_a = 1.0, seed, "A random matrix with orthonormal rows or columns. For rank 2 or more.");
  module.def("identity", &initializers::identity, "gain"_a = 1.0, "`gain` on the diagonal. For rank 2.");
}

void bind_partitioners(nb::module_ module) {
  module.def(
      "FixedShardsPartitioner",
      [](std::int64_t shards) { return Partitioner(FixedShardsPartitioner{shards}); }, "num_shards"_a,
      "min(num_shards, rows) shards.");
  module.def(
      "MinSizePartitioner",
      [](std::int64_t bytes, std::int64_t shards) {
        return Partitioner(MinSizePartitioner{bytes, shards});
      },
      "min_shard_bytes"_a = MinSizePartitioner().min_shard_bytes, "max_shards"_a = 1,
      "Shards of about min_shard_bytes each; at most max_shards.");
  module.def(
      "MaxSizePartitioner",
      [](std::int64_t bytes, std::optional<std::int64_t> shards) {
        return Partitioner(MaxSizePartitioner{bytes, shards.value_or(MaxSizePartitioner().max_shards)});
      },
      "max_shard_bytes"_a, "max_shards"_a = nb::none(), "The fewest shards of at most max_shard_bytes each.");
}

}  // namespace

void bind_options(nb::module_& module) {
  nb::class_<LearningRate>(module, "LearningRate", "A schedule. Made by capstan.optimizers.schedules.")
      .def(nb::init<double>())
      .def_ro("initial", &LearningRate::initial);
  nb::class_<Optimizer>(module, "Optimizer", "How a ps applies gradients. Made by capstan.optimizers.")
      .def_prop_ro("name", [](const Optimizer& optimizer) { return std::string(to_string(optimizer.kind)); })
      .def_ro("learning_rate", &Optimizer::learning_rate);
  nb::class_<Initializer>(module, "Initializer",
                          "How each ps fills its shards of a variable. Made by capstan.initializers.");
  nb::class_<Partitioner>(module, "Partitioner",
                          "Decides the number of shards of a variable. Made by capstan.partitioners.")
      .def("__call__", [](const Partitioner& partitioner, const std::vector<std::int64_t>& shape, int dtype) {
        return partitioner(shape, static_cast<DType>(dtype)).axes;
      });
  nb::module_ optimizers = module.def_submodule("optimizers");
  bind_optimizers(optimizers);
  bind_schedules(optimizers.def_submodule("schedules"));
  bind_initializers(module.def_submodule("initializers"));
  bind_partitioners(module.def_submodule("partitioners"));
}

}  // namespace capstan::python
