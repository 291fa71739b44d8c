// optimizer_choice.cpp -- one optimizer a kind, each with a learning rate of its own.
#include "train/optimizer_choice.hpp"

#include <string>

#include "base/assert.hpp"
#include "base/settings.hpp"

namespace capstan::train {

Optimizer choose_optimizer(const Settings& settings, std::string_view own, double rate) {
  const std::string kind = settings.given("optimizer") ? settings.text("optimizer") : std::string(own);
  const auto or_given = [&](double otherwise) {
    return settings.given("learning-rate") ? settings.real("learning-rate") : otherwise;
  };
  if (kind == "sgd") return optimizers::SGD{or_given(0.1)};
  if (kind == "momentum") {
    return optimizers::Momentum{or_given(0.01), settings.real("momentum"), settings.flag("nesterov")};
  }
  if (kind == "rmsprop") return optimizers::RMSProp{.learning_rate = or_given(1e-3)};
  if (kind == "adamw") return optimizers::AdamW{.learning_rate = or_given(1e-3)};
  if (kind == "ftrl") return optimizers::FTRL{.learning_rate = or_given(rate), .initial_accumulator = 0};
  if (kind == "adam") return optimizers::Adam{.learning_rate = or_given(1e-3)};
  CAPSTAN_ASSERT(kind == "adagrad" && "the settings table has an optimizer that is not here");
  return optimizers::Adagrad{.learning_rate = or_given(rate), .initial_accumulator = 0, .epsilon = 1e-10};
}

}  // namespace capstan::train
