// factorization_scorer.cpp -- ratings of items, and the best items of a user, by the numbers of their rows.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <unordered_set>

#include "capstan/error.hpp"
#include "train/best_scores.hpp"
#include "train/mf/factorization.hpp"
#include "train/saved_rows.hpp"
#include "train/scoring/request_members.hpp"
#include "train/scoring/scorer.hpp"

namespace capstan::train {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 4> kFactorizationMembers{"user", "items", "count", "exclude"};
constexpr std::int64_t kItemsPerRead = 8192;

class FactorizationScorer final : public Scorer {
 public:
  FactorizationScorer(std::shared_ptr<const capstan::Model> model, const SavedProgram& saved)
      : model_(std::move(model)),
        rows_(open_saved_rows(model_)),
        implicit_(saved.property("--implicit") == "true"),
        factors_(static_cast<std::size_t>(saved.number("--factors"))) {
    const std::string mean = saved.property("a mean rating of");
    const auto [end, error] = std::from_chars(mean.data(), mean.data() + mean.size(), mean_);
    const auto width = static_cast<std::int64_t>(factors_) + 1;
    if (error != std::errc{} || end != mean.data() + mean.size() || rows_->shape("users").at(1) != width ||
        rows_->shape("items").at(1) != width) {
      throw Error(Code::data_loss, fmt::format("{}: the tables or the mean rating {} do not fit --factors {}",
                                               saved.path, mean, factors_));
    }
  }

  json describe() const override {
    return {{"program", "mf"},
            {"users", rows_->shape("users").at(0)},
            {"items", rows_->shape("items").at(0)},
            {"factors", factors_},
            {"implicit", implicit_},
            {"mean", mean_}};
  }

  json score(const json& request, std::size_t max_elements) const override {
    check_members(request, kFactorizationMembers);
    mf::BatchRows rows;
    rows.users = lookup_floats(*model_, "users", std::vector{integer_member(request, "user")});
    if (implicit_)
      rows.users.back() = 0;  // the bias of a user has no effect on the order, and is not trained
    if (request.contains("items")) {
      const auto items = integers_member(request, "items", max_elements);
      rows.items = lookup_floats(*model_, "items", items);
      return {{"scores", scores_of(rows, items.size())}};
    }
    const auto excluded = request.contains("exclude") ? integers_member(request, "exclude", max_elements)
                                                      : std::vector<std::int64_t>();
    return {
        {"items", best_items(rows, count_member(request, max_elements), {excluded.begin(), excluded.end()})}};
  }

 private:
  std::vector<double> scores_of(const mf::BatchRows& rows, std::size_t items) const {
    mf::RatingBatch batch;
    std::vector<double> scores;
    for (std::size_t i = 0; i < items; ++i) {
      batch.users.push_back(0);
      batch.items.push_back(static_cast<std::uint32_t>(i));
      scores.push_back(mf::predict(batch, i, rows, factors_, mean_));
    }
    return scores;
  }

  json best_items(mf::BatchRows& rows, std::size_t count,
                  const std::unordered_set<std::int64_t>& excluded) const {
    BestScores best(count);
    const std::int64_t total = rows_->shape("items").at(0);
    for (std::int64_t first = 0; first < total; first += kItemsPerRead) {
      const std::int64_t size = std::min(kItemsPerRead, total - first);
      rows.items = rows_->floats("items", first, size);
      const std::vector<double> scores = scores_of(rows, static_cast<std::size_t>(size));
      for (std::int64_t i = 0; i < size; ++i) {
        if (!excluded.contains(first + i)) best.add(scores[static_cast<std::size_t>(i)], first + i);
      }
    }
    json list = json::array();
    for (const auto& [score, item] : best.take()) list.push_back({{"item", item}, {"score", score}});
    return list;
  }

  std::shared_ptr<const capstan::Model> model_;
  std::unique_ptr<SavedRows> rows_;
  bool implicit_;
  std::size_t factors_;
  double mean_ = 0;
};

}  // namespace

std::unique_ptr<Scorer> make_factorization_scorer(std::shared_ptr<const capstan::Model> model,
                                                  const SavedProgram& saved) {
  return std::make_unique<FactorizationScorer>(std::move(model), saved);
}

}  // namespace capstan::train
