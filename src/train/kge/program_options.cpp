// program_options.cpp -- conversion of settings to options, with the defaults of the model.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/settings.hpp"
#include "protocol/int8_rows.hpp"
#include "train/kge/program.hpp"
#include "train/optimizer_choice.hpp"
#include "train/set_default.hpp"

namespace capstan::kge {
namespace {

/// Evaluations without an improvement after which a training by --auto ends.
constexpr int kAutoPatience = 4;
/// Evaluations in the default number of epochs. More take time, fewer miss the best epoch of a small graph.
constexpr int kAutoEvaluations = 6;
/// Limit of --epochs with --auto, in complete trainings: the time ends sooner unless the graph is small.
constexpr int kMaxTrainings = 40;

bool has_validation_file(const std::string& data) {
  std::error_code ignored;
  const auto bytes = std::filesystem::file_size(std::filesystem::path(data) / "valid.txt", ignored);
  return !ignored && bytes > 0;
}

/// Decides whether --auto is on by default.
bool searches_by_default(const Settings& settings) {
  const bool ends_otherwise = settings.given("epochs") ||
                              (settings.given("patience") && settings.integer("patience") == 0) ||
                              (settings.given("eval-every") && settings.integer("eval-every") == 0);
  return !ends_otherwise && has_validation_file(settings.text("data"));
}

/// Returns the settings with the defaults of the model.
Settings with_defaults(Settings settings) {
  const ModelDefaults& defaults = defaults_of(parse_model(settings.text("model")));
  train::set_default(settings, "dim", defaults.dim);
  train::set_default(settings, "negatives", defaults.negatives);
  train::set_default(settings, "batch", defaults.batch);
  train::set_default(settings, "auto", searches_by_default(settings));
  if (settings.flag("auto")) {
    if (settings.given("epochs")) {
      throw Error(Code::invalid_argument,
                  fmt::format("--auto chooses the number of epochs: found --epochs {}, expected none",
                              settings.integer("epochs")));
    }
    train::set_default(settings, "epochs", kMaxTrainings * defaults.epochs);
    train::set_default(settings, "patience", kAutoPatience);
    train::set_default(settings, "eval-every", std::max(1, defaults.epochs / kAutoEvaluations));
    if (settings.integer("patience") == 0) {
      throw Error(Code::invalid_argument, "--auto: found --patience 0, expected at least 1");
    }
  }
  train::set_default(settings, "epochs", defaults.epochs);
  if (settings.integer("patience") > 0) train::set_default(settings, "eval-every", 1);
  train::set_default(settings, "n3", defaults.n3);
  train::set_default(settings, "margin", defaults.margin);
  train::set_optimizer_defaults(settings, "adagrad", defaults.learning_rate);
  return settings;
}

}  // namespace

ProgramOptions ProgramOptions::from(const Settings& unresolved) {
  const Settings settings = with_defaults(unresolved);
  const auto integer = [&](const char* name) { return static_cast<int>(settings.integer(name)); };
  ProgramOptions o;
  static_cast<train::RunOptions&>(o) = train::RunOptions::from(settings);
  o.data = settings.text("data");
  o.model = parse_model(settings.text("model"));
  o.dim = integer("dim");
  o.negatives = integer("negatives");
  o.batch = integer("batch");
  o.slice_batches = integer("slice-batches");
  o.on_gpu = settings.text("device") == "cuda";
  o.looks_ahead = settings.flag("look-ahead");
  o.n3 = static_cast<float>(settings.real("n3"));
  o.margin = static_cast<float>(settings.real("margin"));
  o.auto_search.enabled = settings.flag("auto");
  if (o.auto_search.enabled) {
    o.auto_search.time = settings.duration("auto-time");
    o.auto_search.trial_epochs = defaults_of(o.model).epochs / kTrialsInTraining;
    for (SearchedSetting& one : searched_settings(o.model))
      if (!unresolved.given(one.name)) o.auto_search.searched.push_back(std::move(one));
  }
  o.read_table_options(settings);
  o.refuse_unseen = settings.text("unseen") == "error";
  o.predictions = integer("predictions");

  if (has_complex_rows(o.model) && o.dim % 2 != 0) {
    throw Error(Code::invalid_argument,
                fmt::format("--dim {}: expected an even number for --model {}: a row is real and imaginary "
                            "halves",
                            o.dim, to_string(o.model)));
  }
  if (o.on_gpu && !runs_on_gpu(o.model)) {
    throw Error(Code::invalid_argument, fmt::format("--device cuda: expected --model complex, distmult or "
                                                    "transe, found {}, which trains on CPUs only",
                                                    to_string(o.model)));
  }
  if (o.tables.int8_rows && o.dim < static_cast<int>(protocol::kMinInt8Elements)) {
    throw Error(Code::invalid_argument,
                fmt::format("--table-dtype int8: found --dim {}, expected at least {}; int8 rows of fewer "
                            "elements take no less memory",
                            o.dim, protocol::kMinInt8Elements));
  }
  if (!has_n3(o.model) && o.n3 != 0) {
    throw Error(Code::invalid_argument, fmt::format("--n3: expected --model complex, distmult or rescal, "
                                                    "found {}, which has no N3 penalty",
                                                    to_string(o.model)));
  }
  if (o.margin != 0 && o.model != ModelKind::rotate) {
    throw Error(Code::invalid_argument,
                fmt::format("--margin: expected --model rotate, found {}, whose loss is the softmax "
                            "cross-entropy",
                            to_string(o.model)));
  }
  return o;
}

}  // namespace capstan::kge
