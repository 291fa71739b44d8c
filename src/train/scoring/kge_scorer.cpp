// kge_scorer.cpp -- scores of triples, best tails, and similar entities, by name.
#include <fmt/format.h>

#include <array>

#include "capstan/error.hpp"
#include "train/kge/saved_model.hpp"
#include "train/scoring/named_scores.hpp"
#include "train/scoring/request_members.hpp"
#include "train/scoring/scorer.hpp"

namespace capstan::train {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 6> kKgeMembers{"head",  "relation", "tail",
                                                      "count", "triples",  "similar"};

class KgeScorer final : public Scorer {
 public:
  explicit KgeScorer(std::shared_ptr<const capstan::Model> model)
      : model_(open_saved_rows(std::move(model))) {}

  json describe() const override {
    return {{"program", "kge"},
            {"model", std::string(to_string(model_.model()))},
            {"dim", model_.dim()},
            {"entities", model_.entities().names().size()},
            {"relations", model_.relations().names().size()}};
  }

  json score(const json& request, std::size_t max_elements) const override {
    check_members(request, kKgeMembers);
    if (request.contains("triples")) {
      json scores = json::array();
      for (const json& triple : list_member(request, "triples", max_elements)) {
        scores.push_back(score_of(triple));
      }
      return {{"scores", std::move(scores)}};
    }
    if (request.contains("similar")) {
      return {{"entities", ranked(model_.entities().most_similar(text_member(request, "similar"),
                                                                 count_member(request, max_elements)),
                                  "entity", "cosine")}};
    }
    const std::string head = text_member(request, "head"), relation = text_member(request, "relation");
    if (request.contains("tail"))
      return {{"score", model_.score(head, relation, text_member(request, "tail"))}};
    return {{"tails", ranked(model_.predict_tails(head, relation, count_member(request, max_elements)),
                             "entity", "score")}};
  }

  std::vector<std::int64_t> rows_of(const std::string& variable,
                                    std::span<const std::string> names) const override {
    for (const NamedRows* rows : {&model_.entities(), &model_.relations()}) {
      if (variable == rows->variable()) return numbers_of(*rows, names);
    }
    return Scorer::rows_of(variable, names);
  }

 private:
  double score_of(const json& triple) const {
    const auto is_text = [](const json& name) { return name.is_string(); };
    if (!triple.is_array() || triple.size() != 3 || !std::ranges::all_of(triple, is_text)) {
      throw Error(Code::invalid_argument,
                  "\"triples\": found another element, expected lists [head, relation, tail] of names");
    }
    return model_.score(triple[0].get<std::string>(), triple[1].get<std::string>(),
                        triple[2].get<std::string>());
  }

  kge::SavedModel model_;
};

}  // namespace

std::unique_ptr<Scorer> make_kge_scorer(std::shared_ptr<const capstan::Model> model) {
  return std::make_unique<KgeScorer>(std::move(model));
}

}  // namespace capstan::train
