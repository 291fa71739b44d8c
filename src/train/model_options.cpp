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
  int epochs;
};

Defaults defaults_of(Program program) {
  switch (program) {
    case Program::lr:
      return {"adagrad", 0.1, 256, 10};
    case Program::fm:
      return {"adagrad", 0.05, 256, 10};
    case Program::mlp:
      break;
  }
  return {"adam", 0.1, 64, 10};
}

/// Returns the settings with the defaults of the program.
Settings with_defaults(Program program, Settings settings) {
  const Defaults defaults = defaults_of(program);
  set_default(settings, "batch", defaults.batch);
  set_default(settings, "epochs", defaults.epochs);
  set_default(settings, "eval-every", 1);
  set_optimizer_defaults(settings, defaults.optimizer, defaults.learning_rate);
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

std::vector<std::string> files(Program program, const Settings& settings, const char* name, bool needed,
                               const char* what) {
  std::vector<std::string> names =
      settings.given(name) ? split(settings.text(name)) : std::vector<std::string>();
  if (names.empty() && (needed || settings.given(name))) {
    throw usage_error(fmt::format("`capstan train {}`: --{} is not set, expected FILE...: {}",
                                  to_string(program), name, what));
  }
  return names;
}

std::vector<std::int64_t> widths(const std::string& text) {
  std::vector<std::int64_t> numbers;
  for (const std::string& word : split(text)) {
    std::int64_t number = 0;
    const auto [behind, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || behind != word.data() + word.size() || number < 1 || number > 65536) {
      throw usage_error(
          fmt::format("--hidden \"{}\": expected comma-separated widths of 1 to 65536, such "
                      "as 128,64; found \"{}\"",
                      text, word));
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
    case Program::mlp:
      break;
  }
  return "mlp";
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
  o.program = program;
  const bool images = program == Program::mlp;
  o.data = files(program, settings, "data", true, images ? "IDX files of images" : "libsvm or Criteo text");
  o.test = files(program, settings, "test", false, "held-out files, of the same kind as --data");
  if (images) {
    o.labels = files(program, settings, "labels", true, "IDX files of labels, one for each of --data");
    o.test_labels = files(program, settings, "test-labels", !o.test.empty(),
                          "IDX files of labels, one for each of --test");
    require_same_number(o.data, o.labels, "data", "labels");
    require_same_number(o.test, o.test_labels, "test", "test-labels");
    o.hidden = widths(settings.text("hidden"));
  } else {
    o.format = {settings.text("format"), settings.integer("features"), settings.integer("hash-bits")};
    if (o.format.format == "criteo" && settings.given("features")) {
      throw usage_error(
          "--features: expected --format libsvm, found criteo; set --hash-bits for the number of rows");
    }
    read_dynamic(settings, o);
    o.bias = settings.flag("bias");
    o.factors = program == Program::fm ? settings.integer("factors") : 0;
    o.tables = TablePrecision::from(settings);
    if (o.tables.int8_rows && o.factors < static_cast<std::int64_t>(protocol::kMinInt8Elements)) {
      throw usage_error(
          fmt::format("--table-dtype int8: found `capstan train {}` with rows of {} {}, expected `fm` with "
                      "--factors {} or "
                      "more; int8 rows of fewer elements take no less memory",
                      to_string(program), std::max<std::int64_t>(o.factors, 1),
                      o.factors > 1 ? "elements" : "element", protocol::kMinInt8Elements));
    }
    o.int8_lookups = settings.flag("int8-lookups");
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
  o.epochs = static_cast<int>(settings.integer("epochs"));
  o.optimizer = selected_optimizer(settings);
  o.l2 = settings.real("l2");
  o.seed = static_cast<std::uint64_t>(settings.integer("seed"));
  if (settings.text("ps-memory") == "device") o.memory = ShardMemory::device;
  if (settings.text("communication-dtype") == "bfloat16") o.communication_dtype = DType::bfloat16;
  o.checkpoint_dir = settings.text("checkpoint-dir");
  o.checkpoint_every = static_cast<int>(settings.integer("checkpoint-every"));
  o.max_to_keep = static_cast<int>(settings.integer("max-to-keep"));
  o.resume = settings.flag("resume");
  o.eval_every = static_cast<int>(settings.integer("eval-every"));
  o.stop = StopOptions::from(settings);
  o.settings_json = settings.to_json();
  if (o.resume && o.checkpoint_dir.empty()) {
    throw usage_error(
        "--resume: --checkpoint-dir is not set, expected the directory of the checkpoint to resume from");
  }
  return o;
}

}  // namespace capstan::train
