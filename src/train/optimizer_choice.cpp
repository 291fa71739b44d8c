// optimizer_choice.cpp -- default learning rates, and the optimizer that the settings select.
#include "train/optimizer_choice.hpp"

#include <string>

#include "base/assert.hpp"
#include "base/settings.hpp"
#include "train/set_default.hpp"

namespace capstan::train {
namespace {

double default_rate_of(std::string_view optimizer, double adagrad_rate) {
  if (optimizer == "sgd") return 0.1;
  if (optimizer == "momentum") return 0.01;
  if (optimizer == "rmsprop" || optimizer == "adam" || optimizer == "adamw") return 1e-3;
  CAPSTAN_ASSERT((optimizer == "adagrad" || optimizer == "ftrl") &&
                 "every optimizer of the settings table is handled above");
  return adagrad_rate;
}

}  // namespace

void set_optimizer_defaults(Settings& settings, std::string_view optimizer, double adagrad_rate) {
  set_default(settings, "optimizer", optimizer);
  set_default(settings, "learning-rate", default_rate_of(settings.text("optimizer"), adagrad_rate));
}

Optimizer selected_optimizer(const Settings& settings) {
  const std::string& kind = settings.text("optimizer");
  const double rate = settings.real("learning-rate");
  if (kind == "sgd") return optimizers::SGD{rate};
  if (kind == "momentum") {
    return optimizers::Momentum{rate, settings.real("momentum"), settings.flag("nesterov")};
  }
  if (kind == "rmsprop") return optimizers::RMSProp{.learning_rate = rate};
  if (kind == "adamw") return optimizers::AdamW{.learning_rate = rate};
  if (kind == "ftrl") return optimizers::FTRL{.learning_rate = rate, .initial_accumulator = 0};
  if (kind == "adam") return optimizers::Adam{.learning_rate = rate};
  CAPSTAN_ASSERT(kind == "adagrad" && "every optimizer of the settings table is handled above");
  return optimizers::Adagrad{.learning_rate = rate, .initial_accumulator = 0, .epsilon = 1e-10};
}

}  // namespace capstan::train
