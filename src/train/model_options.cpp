// model_options.cpp -- conversion of settings to options, with the defaults of each program.
#include "train/model_options.hpp"

#include <fmt/format.h>

#include <charconv>

#include "base/settings.hpp"
#include "capstan/error.hpp"
#include "protocol/int8_rows.hpp"
#include "train/optimizer_choice.hpp"
#include "train/set_default.hpp"

namespace capstan::train {
namespace {

struct Defaults {
  std::string_view optimizer;
  double learning_rate;
  std::int64_t batch;
  int patience = 3;  // without --epochs: evaluations without an improvement until training stops
};

constexpr int kMaxEpochs = 100;  // with early stopping
constexpr int kEpochs = 10;      // without
/// With a larger fraction, the data that is missing in training costs more quality than the choice of the
/// epoch gains: 0.003 of AUC for a tenth of 60,000 click-log examples.
constexpr double kValidFraction = 0.02;

/// `implicit` feedback is an option of mf only.
Defaults defaults_of(Program program, bool implicit) {
  switch (program) {
    case Program::lr:
    case Program::fm:
      return {"adagrad", 0.05, 256};
    case Program::mf:
      // The quality of rankings by implicit feedback improves slowly, and varies from epoch to epoch.
      return implicit ? Defaults{"adagrad", 0.05, 256, 10} : Defaults{"adagrad", 0.03, 256};
    case Program::deepfm:
    case Program::dlrm:
    case Program::dcn:
      // Their log-loss varies from epoch to epoch, too: with 3 evaluations some runs stop too early.
      return {"adagrad", 0.03, 256, 6};
    case Program::mlp:
      break;
  }
  return {"adam", 0.1, 64};
}

/// Returns the settings with the defaults of the program.
Settings with_defaults(Program program, Settings settings) {
  const Defaults defaults = defaults_of(program, program == Program::mf && settings.flag("implicit"));
  set_default(settings, "batch", defaults.batch);
  set_default(settings, "eval-every", 1);
  const bool evaluates = settings.integer("eval-every") > 0;
  set_default(settings, "patience", settings.given("epochs") || !evaluates ? 0 : defaults.patience);
  const bool stops_early = settings.integer("patience") > 0;
  set_default(settings, "epochs", stops_early ? kMaxEpochs : kEpochs);
  set_default(settings, "valid-fraction", stops_early && !settings.given("valid") ? kValidFraction : 0);
  if (program == Program::mf) {
    set_default(settings, "factors", 64);
    set_default(settings, "l2", settings.flag("implicit") ? 0.01 : 0.09);
  }
  set_optimizer_defaults(settings, defaults.optimizer, defaults.learning_rate);
  if (deep_model(program)) {
    set_default(settings, "format", "criteo");
    set_default(settings, "factors", 16);
    set_default(settings, "hidden", "128,64");
  }
  return settings;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    if (comma > at) words.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return words;
}

Error usage_error(const std::string& message) { return Error(Code::invalid_argument, message); }

std::vector<std::string> file_list(Program program, const Settings& settings, const char* name, bool needed,
                                   const char* what) {
  std::vector<std::string> names =
      settings.given(name) ? split(settings.text(name)) : std::vector<std::string>();
  if (names.empty() && (needed || settings.given(name))) {
    throw usage_error(fmt::format("`capstan train {}`: --{} is not set, expected FILE...: {}",
                                  to_string(program), name, what));
  }
  return names;
}

std::vector<std::int64_t> widths(const char* name, const std::string& text) {
  std::vector<std::int64_t> numbers;
  for (const std::string& word : split(text)) {
    std::int64_t number = 0;
    const auto [behind, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || behind != word.data() + word.size() || number < 1 || number > 65536) {
      throw usage_error(
          fmt::format("--{} \"{}\": expected comma-separated widths of 1 to 65536, such "
                      "as 128,64; found \"{}\"",
                      name, text, word));
    }
    numbers.push_back(number);
  }
  return numbers;
}

void require_same_number(const std::vector<std::string>& images, const std::vector<std::string>& labels,
                         const char* images_name, const char* labels_name) {
  if (images.size() == labels.size()) return;
  throw usage_error(
      fmt::format("--{} has {} files and --{} has {}: expected one label file for each image file",
                  images_name, images.size(), labels_name, labels.size()));
}

/// Loads --schema.
void read_schema(const Settings& settings, SparseFormat& format) {
  const std::string& schema = settings.text("schema");
  if ((format.format == "csv") == schema.empty()) {
    throw usage_error(schema.empty()
                          ? "--schema is not set, expected a TOML file that names the columns of --format csv"
                          : fmt::format("--schema: expected --format csv, found {}", format.format));
  }
  if (!schema.empty()) format.schema = CsvSchema::load(schema);
}

/// Sets the options of deepfm, dlrm and dcn.
void read_deep(const Settings& settings, ModelOptions& o) {
  const auto program = to_string(o.program);
  if (o.format.format != "criteo") {
    throw usage_error(fmt::format("`capstan train {}` requires fields: expected --format criteo, found {}",
                                  program, o.format.format));
  }
  if (!settings.flag("bias")) {
    throw usage_error(fmt::format("--no-bias: expected `capstan train lr` or `fm`, found {}", program));
  }
  if (o.factors < 1)
    throw usage_error(fmt::format("--factors: found 0, expected at least 1 for {}", program));
  o.format.fields = true;
  o.sparse_l2.factors_constant = 500;  // also of layers
  o.deep = {*deep_model(o.program), o.factors, widths("hidden", settings.text("hidden"))};
  if (o.deep.model == DeepModel::dlrm) o.deep.bottom = widths("bottom", settings.text("bottom"));
  if (o.deep.model == DeepModel::dcn) o.deep.cross_layers = settings.integer("cross-layers");
}

/// Sets the options of dynamic tables.
void read_dynamic(const Settings& settings, ModelOptions& o) {
  o.format.dynamic = settings.flag("dynamic");
  o.max_keys = static_cast<std::uint64_t>(settings.integer("max-keys"));
  o.admit_after = static_cast<std::uint32_t>(settings.integer("admit-after"));
  for (const char* name : {"features", "hash-bits"}) {
    if (o.format.dynamic && settings.given(name)) {
      throw usage_error(fmt::format(
          "--{} cannot be used with --dynamic, whose tables add rows as needed; limit them with --max-keys",
          name));
    }
  }
  for (const char* name : {"max-keys", "admit-after"}) {
    if (!o.format.dynamic && settings.given(name))
      throw usage_error(fmt::format("--{} limits dynamic tables: expected --dynamic", name));
  }
  if (o.format.dynamic && settings.text("ps-memory") == "device") {
    throw usage_error("--dynamic: found --ps-memory device, expected host: a GPU cannot hold dynamic tables");
  }
}

}  // namespace

std::string_view to_string(Program program) noexcept {
  switch (program) {
    case Program::lr:
      return "lr";
    case Program::fm:
      return "fm";
    case Program::mf:
      return "mf";
    case Program::deepfm:
      return "deepfm";
    case Program::dlrm:
      return "dlrm";
    case Program::dcn:
      return "dcn";
    case Program::mlp:
      break;
  }
  return "mlp";
}

std::optional<DeepModel> deep_model(Program program) noexcept {
  switch (program) {
    case Program::deepfm:
      return DeepModel::deepfm;
    case Program::dlrm:
      return DeepModel::dlrm;
    case Program::dcn:
      return DeepModel::dcn;
    default:
      return {};
  }
}

std::string_view to_string(Mode mode) noexcept {
  switch (mode) {
    case Mode::asynchronous:
      return "asynchronous";
    case Mode::stale_synchronous:
      return "stale_synchronous";
    case Mode::synchronous:
      break;
  }
  return "synchronous";
}

ModelOptions ModelOptions::from(Program program, const Settings& unresolved) {
  const Settings settings = with_defaults(program, unresolved);
  ModelOptions o;
  static_cast<RunOptions&>(o) = RunOptions::from(settings);
  o.program = program;
  const bool images = program == Program::mlp;
  o.data = file_list(program, settings, "data", true,
                     images                   ? "IDX files of images"
                     : program == Program::mf ? "lines of user, item and rating"
                                              : "libsvm, Criteo or CSV text");
  o.test = file_list(program, settings, "test", false, "held-out files, of the same kind as --data");
  o.valid = file_list(program, settings, "valid", false, "validation files, of the same kind as --data");
  o.valid_fraction = settings.real("valid-fraction");
  o.more_of_first = o.valid_fraction > 0 && !unresolved.given("valid-fraction");
  if (o.valid_fraction > 0 && !o.valid.empty()) {
    throw usage_error("--valid-fraction divides --data: expected no --valid with it");
  }
  if (images) {
    o.labels = file_list(program, settings, "labels", true, "IDX files of labels, one for each of --data");
    o.test_labels = file_list(program, settings, "test-labels", !o.test.empty(),
                              "IDX files of labels, one for each of --test");
    o.valid_labels = file_list(program, settings, "valid-labels", !o.valid.empty(),
                               "IDX files of labels, one for each of --valid");
    require_same_number(o.data, o.labels, "data", "labels");
    require_same_number(o.valid, o.valid_labels, "valid", "valid-labels");
    require_same_number(o.test, o.test_labels, "test", "test-labels");
    o.hidden = widths("hidden", settings.text("hidden"));
  } else if (program == Program::mf) {
    o.factors = settings.integer("factors");
    o.implicit = settings.flag("implicit");
    o.read_table_options(settings);
    if (o.tables.int8_rows && o.factors + 1 < static_cast<std::int64_t>(protocol::kMinInt8Elements)) {
      throw usage_error(
          fmt::format("--table-dtype int8: found --factors {}, expected {} or more; int8 rows of fewer "
                      "elements take no less memory",
                      o.factors, protocol::kMinInt8Elements - 1));
    }
  } else {
    o.format = {settings.text("format"), settings.integer("features"), settings.integer("hash-bits")};
    if (o.format.format != "libsvm" && settings.given("features")) {
      throw usage_error(fmt::format(
          "--features: expected --format libsvm, found {}; set --hash-bits for the number of rows",
          o.format.format));
    }
    read_schema(settings, o.format);
    read_dynamic(settings, o);
    o.bias = settings.flag("bias");
    o.factors = program == Program::lr ? 0 : settings.integer("factors");
    if (deep_model(program)) read_deep(settings, o);
    o.read_table_options(settings);
    // A row of a deep model has a weight, too.
    const std::int64_t elements = o.factors + (deep_model(program) ? 1 : 0);
    if (o.tables.int8_rows && elements < static_cast<std::int64_t>(protocol::kMinInt8Elements)) {
      throw usage_error(
          fmt::format("--table-dtype int8: found `capstan train {}` with rows of {} {}, expected `fm` or a "
                      "deep model with --factors {} or more; int8 rows of fewer elements take no less memory",
                      to_string(program), std::max<std::int64_t>(elements, 1),
                      elements > 1 ? "elements" : "element", protocol::kMinInt8Elements));
    }
  }
  o.on_gpu = settings.text("device") == "cuda";
  if (o.on_gpu && !images) {
    throw usage_error(
        fmt::format("`capstan train {}` has no GPU implementation: expected --device cpu; kge and mlp accept "
                    "--device cuda",
                    to_string(program)));
  }
  if (o.on_gpu && settings.integer("replicas") > 1) {
    throw usage_error(
        "--device cuda uses one GPU per worker: expected --replicas 1; use more --workers instead");
  }
  const std::string& mode = settings.text("mode");
  o.mode = mode == "synchronous"         ? Mode::synchronous
           : mode == "stale_synchronous" ? Mode::stale_synchronous
                                         : Mode::asynchronous;
  if (settings.given("staleness") && o.mode != Mode::stale_synchronous) {
    throw usage_error(fmt::format("--staleness: expected --mode stale_synchronous, found {}", mode));
  }
  o.staleness = settings.integer("staleness");
  o.batch = settings.integer("batch");
  if (program != Program::mf && program != Program::mlp) {
    if (settings.given("l2")) o.sparse_l2.weights = settings.real("l2");
    if (settings.given("factor-l2")) o.sparse_l2.factors = settings.real("factor-l2");
  } else {
    o.l2 = settings.real("l2");
  }
  return o;
}

}  // namespace capstan::train
