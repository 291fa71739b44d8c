// true_answers.cpp -- see true_answers.hpp.
#include "train/kge/true_answers.hpp"

#include <algorithm>
#include <utility>

namespace capstan::kge {
namespace {

std::uint64_t key_of(std::int64_t entity, std::int64_t relation) noexcept {
  return static_cast<std::uint64_t>(entity) << 32 | static_cast<std::uint64_t>(relation);
}

}  // namespace

TrueAnswers::TrueAnswers(std::span<const Triple> triples, std::int64_t relations) {
  std::vector<std::pair<std::uint64_t, std::int32_t>> facts;
  facts.reserve(2 * triples.size());
  for (const Triple& triple : triples) {
    facts.emplace_back(key_of(triple.head, triple.relation), triple.tail);
    facts.emplace_back(key_of(triple.tail, triple.relation + relations), triple.head);
  }
  std::ranges::sort(facts);
  facts.erase(std::unique(facts.begin(), facts.end()), facts.end());

  answers_.reserve(facts.size());
  for (const auto& [key, answer] : facts) {
    if (keys_.empty() || keys_.back() != key) {
      keys_.push_back(key);
      offsets_.push_back(answers_.size());
    }
    answers_.push_back(answer);
  }
  offsets_.push_back(answers_.size());
}

std::span<const std::int32_t> TrueAnswers::of(std::int32_t entity, std::int32_t relation) const noexcept {
  const std::uint64_t key = key_of(entity, relation);
  const auto found = std::ranges::lower_bound(keys_, key);
  if (found == keys_.end() || *found != key) return {};
  const auto index = static_cast<std::size_t>(found - keys_.begin());
  return std::span(answers_).subspan(offsets_[index], offsets_[index + 1] - offsets_[index]);
}

}  // namespace capstan::kge
