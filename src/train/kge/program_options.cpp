// program_options.cpp -- settings to options, with the model's own defaults.
#include "base/settings.hpp"
#include "train/kge/program.hpp"

namespace capstan::kge {
namespace {

/// Adagrad and FTRL without a head start: gradients are sums over a batch, so their scale is not known
/// beforehand. FTRL then is Adagrad, and starts from the values that the model was initialized with.
Optimizer optimizer_from(const Settings& settings, const ModelDefaults& defaults) {
  const std::string& kind = settings.text("optimizer");
  const auto rate = [&](double otherwise) {
    return settings.given("learning-rate") ? settings.real("learning-rate") : otherwise;
  };
  const double own = static_cast<double>(defaults.learning_rate);
  if (kind == "sgd") return optimizers::SGD{rate(0.1)};
  if (kind == "momentum") return optimizers::Momentum{.learning_rate = rate(0.01)};
  if (kind == "rmsprop") return optimizers::RMSProp{.learning_rate = rate(1e-3)};
  if (kind == "adamw") return optimizers::AdamW{.learning_rate = rate(1e-3)};
  if (kind == "ftrl") return optimizers::FTRL{.learning_rate = rate(own), .initial_accumulator = 0};
  if (kind == "adam") return optimizers::Adam{.learning_rate = rate(1e-3)};
  return optimizers::Adagrad{.learning_rate = rate(own), .initial_accumulator = 0, .epsilon = 1e-10};
}

}  // namespace

ProgramOptions ProgramOptions::from(const Settings& settings) {
  ProgramOptions o;
  o.data = settings.text("data");
  o.model = parse_model(settings.text("model"));
  const ModelDefaults& defaults = defaults_of(o.model);
  const auto whole = [&](const char* name, int own) {
    return settings.given(name) ? static_cast<int>(settings.integer(name)) : own;
  };
  o.dim = whole("dim", defaults.dim);
  o.negatives = whole("negatives", defaults.negatives);
  o.batch = whole("batch", defaults.batch);
  o.epochs = whole("epochs", defaults.epochs);
  o.slice_batches = static_cast<int>(settings.integer("slice-batches"));
  o.n3 = settings.given("n3") ? static_cast<float>(settings.real("n3")) : defaults.n3;
  o.optimizer = optimizer_from(settings, defaults);
  o.seed = static_cast<std::uint64_t>(settings.integer("seed"));
  o.checkpoint_dir = settings.text("checkpoint-dir");
  o.checkpoint_every = static_cast<int>(settings.integer("checkpoint-every"));
  o.max_to_keep = static_cast<int>(settings.integer("max-to-keep"));
  o.resume = settings.flag("resume");
  o.eval_every = static_cast<int>(settings.integer("eval-every"));
  o.refuse_unseen = settings.text("unseen") == "error";
  o.predictions = static_cast<int>(settings.integer("predictions"));
  o.settings_json = settings.to_json();

  if (o.model == ModelKind::complex && o.dim % 2 != 0) {
    throw Error(Code::invalid_argument, "--dim " + std::to_string(o.dim) +
                                            ": ComplEx needs an even number, real and imaginary halves");
  }
  if (o.model == ModelKind::transe && o.n3 != 0) {
    throw Error(Code::invalid_argument, "--n3 is for complex and distmult; transe has no N3 penalty");
  }
  if (o.resume && o.checkpoint_dir.empty()) {
    throw Error(Code::invalid_argument,
                "--resume needs --checkpoint-dir, where the checkpoint to go on from lies");
  }
  return o;
}

}  // namespace capstan::kge
