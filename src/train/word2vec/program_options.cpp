// program_options.cpp -- conversion of settings to options of word2vec.
#include <fmt/format.h>

#include <algorithm>

#include "base/settings.hpp"
#include "capstan/error.hpp"
#include "train/set_default.hpp"
#include "train/word2vec/program.hpp"

namespace capstan::train::word2vec {
namespace {

/// Long enough that reading and pushing the rows takes a small part of the time, short enough that workers
/// see each other's blocks often: with 8 workers, 50'000 lost quality.
constexpr std::int64_t kBlockWords = 20'000;

Settings with_word2vec_defaults(Settings settings) {
  set_default(settings, "dim", 100);
  set_default(settings, "negatives", 5);
  set_default(settings, "batch", kBlockWords);
  set_default(settings, "epochs", 5);
  set_default(settings, "optimizer", "sgd");
  set_default(settings, "learning-rate", 0.025);
  return settings;
}

std::vector<std::string> split_paths(const std::string& text) {
  std::vector<std::string> paths;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    if (comma > at) paths.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return paths;
}

void check_supported(const Settings& settings) {
  const auto reject = [](const std::string& found, const char* expected) {
    throw Error(Code::invalid_argument,
                fmt::format("{}: expected {} for `capstan train word2vec`", found, expected));
  };
  if (settings.text("optimizer") != "sgd") {
    reject("--optimizer " + settings.text("optimizer"), "sgd, the only optimizer");
  }
  if (settings.text("device") != "cpu") reject("--device " + settings.text("device"), "cpu, the only device");
  for (const char* name : {"patience", "eval-every"}) {
    const std::int64_t value = settings.integer(name);
    if (value != 0) reject(fmt::format("--{} {}", name, value), "0, because there is no validation data");
  }
}

}  // namespace

ProgramOptions ProgramOptions::from(const Settings& unresolved) {
  const Settings settings = with_word2vec_defaults(unresolved);
  check_supported(settings);
  ProgramOptions o;
  static_cast<RunOptions&>(o) = RunOptions::from(settings);
  if (settings.given("data")) o.data = split_paths(settings.text("data"));
  if (o.data.empty()) {
    throw Error(Code::invalid_argument,
                "`capstan train word2vec`: --data is not set, expected text files or directories");
  }
  o.dim = static_cast<std::int32_t>(settings.integer("dim"));
  o.plan = {.window = static_cast<std::int32_t>(settings.integer("context-window")),
            .negatives = static_cast<std::int32_t>(settings.integer("negatives")),
            .subsample = settings.real("subsample")};
  o.min_count = settings.integer("min-count");
  o.batch = settings.integer("batch");
  o.learning_rate = settings.real("learning-rate");
  o.output = settings.text("output");
  o.output_format = settings.text("output-format") == "binary" ? VectorsFormat::binary : VectorsFormat::text;
  o.similarity = settings.text("similarity");
  return o;
}

}  // namespace capstan::train::word2vec
