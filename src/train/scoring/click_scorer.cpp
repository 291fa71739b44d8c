// click_scorer.cpp -- probabilities of examples: lr, fm, deepfm, dlrm and dcn.
#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <mutex>

#include "capstan/error.hpp"
#include "train/deep/deep_network.hpp"
#include "train/saved_rows.hpp"
#include "train/scoring/request_members.hpp"
#include "train/scoring/scorer.hpp"
#include "train/scoring/text_examples.hpp"
#include "train/sparse/closures.hpp"

namespace capstan::train {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 1> kClickMembers{"lines"};

double probability(double logit) { return 1 / (1 + std::exp(-logit)); }

/// `table` is the variable with a row for each feature.
SparseFormat format_of(const capstan::Model& model, const SavedProgram& saved, const std::string& format,
                       const std::string& table) {
  if (format != "libsvm" && format != "criteo") {
    throw Error(Code::failed_precondition,
                fmt::format("{}: trained with --format {}, expected libsvm or criteo", saved.path, format));
  }
  SparseFormat found{.format = format, .dynamic = model.is_table(table)};
  if (found.dynamic) return found;
  const std::int64_t rows = saved.number("a table of rows");
  if (format == "libsvm") {
    found.features = rows;
  } else {
    found.hash_bits = std::countr_zero(static_cast<std::uint64_t>(rows));
  }
  return found;
}

class ClickScorer : public Scorer {
 public:
  json score(const json& request, std::size_t max_elements) const override {
    check_members(request, kClickMembers);
    const auto lines = texts_member(request, "lines", max_elements);
    json probabilities = json::array();
    if (!lines.empty()) {
      for (const double logit : logits(read_lines(lines, format_)))
        probabilities.push_back(probability(logit));
    }
    return {{"probabilities", std::move(probabilities)}};
  }

 protected:
  ClickScorer(std::shared_ptr<const capstan::Model> model, SparseFormat format)
      : model_(std::move(model)), format_(std::move(format)) {}
  virtual std::vector<double> logits(const SparseExamples& batch) const = 0;

  std::shared_ptr<const capstan::Model> model_;
  SparseFormat format_;
};

class SparseScorer final : public ClickScorer {
 public:
  SparseScorer(std::shared_ptr<const capstan::Model> model, const SavedProgram& saved)
      : ClickScorer(model, format_of(*model, saved, saved.property("--format"), "weights")),
        program_(saved.program.substr(saved.program.find(' ') + 1)),
        options_{.factors = saved.number("--factors"), .bias = saved.property("--bias") == "true"} {
    const std::int64_t bias_rows = options_.bias && !format_.dynamic ? 1 : 0;
    const bool rows_fit = format_.dynamic || model_->shape("weights").at(0) == format_.rows() + bias_rows;
    if (!rows_fit || (options_.factors > 0 && model_->shape("factors").at(1) != options_.factors)) {
      throw Error(Code::data_loss, fmt::format("{}: the shapes of weights or factors do not fit --factors {}",
                                               saved.path, options_.factors));
    }
  }

  json describe() const override {
    return {{"program", program_}, {"format", format_.format}, {"factors", options_.factors}};
  }

 private:
  std::vector<double> logits(const SparseExamples& batch) const override {
    std::vector<std::int64_t> weight_ids = batch.ids;
    if (options_.bias) weight_ids.push_back(format_.dynamic ? kBiasKey : format_.rows());
    FmRows rows;
    rows.weights = lookup_floats(*model_, "weights", weight_ids);
    if (options_.factors > 0) rows.factors = lookup_floats(*model_, "factors", batch.ids);
    std::vector<double> found;
    FactorizationMachine(options_).logits(batch, rows, found);
    return found;
  }

  std::string program_;
  FmOptions options_;
};

/// A network has buffers, so each request in progress has its own.
class DeepScorer final : public ClickScorer {
 public:
  DeepScorer(std::shared_ptr<const capstan::Model> model, const SavedProgram& saved, DeepModel kind)
      : ClickScorer(model, format_of(*model, saved, "criteo", "embeddings")),
        program_(saved.program.substr(saved.program.find(' ') + 1)),
        shape_(DeepShape::parse(kind, saved.property("a network of"))) {
    format_.fields = true;
    auto first = std::make_unique<State>(shape_);
    first->values.parameters = open_saved_rows(model_)->floats("network", 0, model_->shape("network").at(0));
    const auto expected = first->network.parameters(0).size();
    if (first->values.parameters.size() != expected ||
        model_->shape("embeddings").at(1) != static_cast<std::int64_t>(shape_.row_width())) {
      throw Error(Code::data_loss, fmt::format("{}: the shapes of embeddings or network do not fit {}",
                                               saved.path, shape_.text()));
    }
    parameters_ = first->values.parameters;
    idle_.push_back(std::move(first));
  }

  json describe() const override {
    return {{"program", program_}, {"format", format_.format}, {"shape", shape_.text()}};
  }

 private:
  struct State {
    explicit State(const DeepShape& shape) : network(shape) {}
    DeepNetwork network;
    DeepValues values;
  };

  std::vector<double> logits(const SparseExamples& batch) const override {
    std::unique_ptr<State> state = take();
    state->values.rows = lookup_floats(*model_, "embeddings", batch.ids);
    const auto found = state->network.logits(batch, state->values);
    std::vector<double> out(found.begin(), found.end());
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(state));
    return out;
  }

  std::unique_ptr<State> take() const {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        std::unique_ptr<State> state = std::move(idle_.back());
        idle_.pop_back();
        return state;
      }
    }
    auto state = std::make_unique<State>(shape_);
    state->values.parameters = parameters_;
    return state;
  }

  std::string program_;
  DeepShape shape_;
  std::vector<float> parameters_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<State>> idle_;
};

}  // namespace

std::unique_ptr<Scorer> make_click_scorer(std::shared_ptr<const capstan::Model> model,
                                          const SavedProgram& saved) {
  if (saved.program == "train deepfm")
    return std::make_unique<DeepScorer>(std::move(model), saved, DeepModel::deepfm);
  if (saved.program == "train dlrm")
    return std::make_unique<DeepScorer>(std::move(model), saved, DeepModel::dlrm);
  if (saved.program == "train dcn")
    return std::make_unique<DeepScorer>(std::move(model), saved, DeepModel::dcn);
  return std::make_unique<SparseScorer>(std::move(model), saved);
}

}  // namespace capstan::train
