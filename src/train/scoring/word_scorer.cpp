// word_scorer.cpp -- similar words, by name.
#include <array>

#include "train/scoring/named_scores.hpp"
#include "train/scoring/request_members.hpp"
#include "train/scoring/scorer.hpp"
#include "train/word2vec/saved_words.hpp"

namespace capstan::train {
namespace {

constexpr std::array<std::string_view, 2> kWordMembers{"similar", "count"};

class WordScorer final : public Scorer {
 public:
  explicit WordScorer(std::shared_ptr<const capstan::Model> model)
      : words_(word2vec::open_saved_words(open_saved_rows(std::move(model)))) {}

  nlohmann::json describe() const override {
    return {{"program", "word2vec"}, {"words", words_.names().size()}};
  }

  nlohmann::json score(const nlohmann::json& request, std::size_t max_elements) const override {
    check_members(request, kWordMembers);
    const std::string word = text_member(request, "similar");
    return {
        {"words", ranked(words_.most_similar(word, count_member(request, max_elements)), "word", "cosine")}};
  }

  std::vector<std::int64_t> rows_of(const std::string& variable,
                                    std::span<const std::string> names) const override {
    return variable == words_.variable() ? numbers_of(words_, names) : Scorer::rows_of(variable, names);
  }

 private:
  NamedRows words_;
};

}  // namespace

std::unique_ptr<Scorer> make_word_scorer(std::shared_ptr<const capstan::Model> model) {
  return std::make_unique<WordScorer>(std::move(model));
}

}  // namespace capstan::train
