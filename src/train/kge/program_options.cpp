// program_options.cpp -- conversion of settings to options, with the defaults of the model.
#include "base/settings.hpp"
#include "train/kge/program.hpp"
#include "train/optimizer_choice.hpp"

namespace capstan::kge {

ProgramOptions ProgramOptions::from(const Settings& settings) {
  ProgramOptions o;
  o.data = settings.text("data");
  o.model = parse_model(settings.text("model"));
  const ModelDefaults& defaults = defaults_of(o.model);
  const auto integer_or = [&](const char* name, int fallback) {
    return settings.given(name) ? static_cast<int>(settings.integer(name)) : fallback;
  };
  o.dim = integer_or("dim", defaults.dim);
  o.negatives = integer_or("negatives", defaults.negatives);
  o.batch = integer_or("batch", defaults.batch);
  o.epochs = integer_or("epochs", defaults.epochs);
  o.slice_batches = static_cast<int>(settings.integer("slice-batches"));
  o.on_gpu = settings.text("device") == "cuda";
  o.looks_ahead = settings.flag("look-ahead");
  o.n3 = settings.given("n3") ? static_cast<float>(settings.real("n3")) : defaults.n3;
  o.optimizer = train::choose_optimizer(settings, "adagrad", static_cast<double>(defaults.learning_rate));
  o.seed = static_cast<std::uint64_t>(settings.integer("seed"));
  if (settings.text("ps-memory") == "device") o.memory = ShardMemory::device;
  if (settings.text("communication-dtype") == "bfloat16") o.communication_dtype = DType::bfloat16;
  o.tables = train::TablePrecision::from(settings);
  o.int8_lookups = settings.flag("int8-lookups");
  o.checkpoint_dir = settings.text("checkpoint-dir");
  o.checkpoint_every = static_cast<int>(settings.integer("checkpoint-every"));
  o.max_to_keep = static_cast<int>(settings.integer("max-to-keep"));
  o.resume = settings.flag("resume");
  o.eval_every = static_cast<int>(settings.integer("eval-every"));
  o.refuse_unseen = settings.text("unseen") == "error";
  o.predictions = static_cast<int>(settings.integer("predictions"));
  o.stop = train::StopOptions::from(settings);
  o.settings_json = settings.to_json();

  if (o.model == ModelKind::complex && o.dim % 2 != 0) {
    throw Error(Code::invalid_argument,
                "--dim " + std::to_string(o.dim) +
                    ": expected an even number for ComplEx: a row is real and imaginary halves");
  }
  if (o.model == ModelKind::transe && o.n3 != 0) {
    throw Error(Code::invalid_argument,
                "--n3: expected --model complex or distmult, found transe, which has no N3 penalty");
  }
  if (o.resume && o.checkpoint_dir.empty()) {
    throw Error(
        Code::invalid_argument,
        "--resume: --checkpoint-dir is not set, expected the directory of the checkpoint to resume from");
  }
  return o;
}

}  // namespace capstan::kge
