// run_options.cpp -- conversion of settings to the options of all programs.
#include "train/run_options.hpp"

#include "base/settings.hpp"
#include "capstan/error.hpp"
#include "capstan/partitioners.hpp"
#include "train/optimizer_choice.hpp"

namespace capstan::train {

RunOptions RunOptions::from(const Settings& settings) {
  const auto integer = [&](const char* name) { return static_cast<int>(settings.integer(name)); };
  RunOptions o;
  o.epochs = integer("epochs");
  o.patience = integer("patience");
  o.eval_every = integer("eval-every");
  o.optimizer = selected_optimizer(settings);
  o.seed = static_cast<std::uint64_t>(settings.integer("seed"));
  if (settings.text("ps-memory") == "device") o.memory = ShardMemory::device;
  if (settings.text("communication-dtype") == "bfloat16") o.communication_dtype = DType::bfloat16;
  o.checkpoint_dir = settings.text("checkpoint-dir");
  o.checkpoint_every = integer("checkpoint-every");
  o.max_to_keep = integer("max-to-keep");
  o.resume = settings.flag("resume");
  o.stop = StopOptions::from(settings);
  o.settings_json = settings.to_json();
  if (o.resume && o.checkpoint_dir.empty()) {
    throw Error(
        Code::invalid_argument,
        "--resume: --checkpoint-dir is not set, expected the directory of the checkpoint to resume from");
  }
  if (o.patience > 0 && o.eval_every == 0) {
    throw Error(Code::invalid_argument,
                "--patience counts evaluations: found --eval-every 0, expected at least 1");
  }
  return o;
}

void RunOptions::read_table_options(const Settings& settings) {
  tables = TablePrecision::from(settings);
  int8_lookups = settings.flag("int8-lookups");
}

StrategyOptions RunOptions::strategy_options(int ps) const {
  return {.variable_partitioner = FixedShardsPartitioner{ps},
          .memory = memory,
          .communication_dtype = communication_dtype,
          .int8_lookups = int8_lookups};
}

}  // namespace capstan::train
