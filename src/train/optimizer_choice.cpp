// optimizer_choice.cpp -- creates the optimizer that the settings select, with its default rate.
#include "train/optimizer_choice.hpp"

#include <string>

#include "base/assert.hpp"
#include "base/settings.hpp"

namespace capstan::train {

Optimizer choose_optimizer(const Settings& settings, std::string_view fallback, double adagrad_rate) {
  const std::string kind = settings.given("optimizer") ? settings.text("optimizer") : std::string(fallback);
  const auto rate_or = [&](double otherwise) {
    return settings.given("learning-rate") ? settings.real("learning-rate") : otherwise;
  };
  if (kind == "sgd") return optimizers::SGD{rate_or(0.1)};
  if (kind == "momentum") {
    return optimizers::Momentum{rate_or(0.01), settings.real("momentum"), settings.flag("nesterov")};
  }
  if (kind == "rmsprop") return optimizers::RMSProp{.learning_rate = rate_or(1e-3)};
  if (kind == "adamw") return optimizers::AdamW{.learning_rate = rate_or(1e-3)};
  if (kind == "ftrl")
    return optimizers::FTRL{.learning_rate = rate_or(adagrad_rate), .initial_accumulator = 0};
  if (kind == "adam") return optimizers::Adam{.learning_rate = rate_or(1e-3)};
  CAPSTAN_ASSERT(kind == "adagrad" && "every optimizer of the settings table is handled above");
  return optimizers::Adagrad{
      .learning_rate = rate_or(adagrad_rate), .initial_accumulator = 0, .epsilon = 1e-10};
}

}  // namespace capstan::train
