// named_rows.cpp -- see named_rows.hpp.
#include "train/named_rows.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "capstan/error.hpp"
#include "train/best_scores.hpp"
#include "train/kge/kernels.hpp"
#include "train/packed_names.hpp"

namespace capstan::train {
namespace {

constexpr std::int64_t kNamedRowsPerRead = 8192;
constexpr std::size_t kSuggestions = 5;

}  // namespace

NamedRows::NamedRows(std::shared_ptr<const SavedRows> saved, Variables variables, std::int64_t width,
                     std::int64_t rows_per_name)
    : saved_(std::move(saved)), variables_(std::move(variables)), width_(width) {
  if (!saved_->has(variables_.names)) {
    throw Error(Code::failed_precondition,
                fmt::format("{} has no variable {}; it was saved by a version of `capstan train` that does "
                            "not save names, or exported without it",
                            saved_->path(), variables_.names));
  }
  names_ = unpack_names(saved_->integers(variables_.names));
  const Shape found = saved_->shape(variables_.rows);
  const Shape expected{rows_per_name * static_cast<std::int64_t>(names_.size()), width};
  if (found != expected) {
    throw Error(Code::data_loss, fmt::format("{}: variable {} has the shape {}, expected {}", saved_->path(),
                                             variables_.rows, to_string(found), to_string(expected)));
  }
  numbers_.reserve(names_.size());
  for (std::size_t i = 0; i < names_.size(); ++i) numbers_.emplace(names_[i], static_cast<std::int64_t>(i));
}

std::int64_t NamedRows::number_of(std::string_view name) const {
  if (const auto found = numbers_.find(name); found != numbers_.end()) return found->second;
  const std::vector<std::string> near = near_names(name, names_, kSuggestions);
  throw Error(Code::not_found,
              fmt::format("{} \"{}\": there is none in the checkpoint, expected one of {} names{}", kind(),
                          name, names_.size(),
                          near.empty() ? "" : fmt::format("; did you mean {}?", fmt::join(near, ", "))));
}

std::vector<float> NamedRows::row(std::string_view name) const {
  return saved_->floats(variable(), number_of(name), 1);
}

std::vector<float> NamedRows::all() const {
  return saved_->floats(variable(), 0, saved_->shape(variable()).at(0));
}

std::vector<ScoredName> NamedRows::best(std::size_t count, std::int64_t excluded,
                                        const std::function<double(const float* row)>& score) const {
  const auto total = static_cast<std::int64_t>(names_.size());
  BestScores best(count);
  for (std::int64_t first = 0; first < total; first += kNamedRowsPerRead) {
    const std::int64_t size = std::min(kNamedRowsPerRead, total - first);
    const std::vector<float> block = saved_->floats(variable(), first, size);
    for (std::int64_t i = 0; i < size; ++i) {
      if (first + i != excluded) best.add(score(block.data() + i * width_), first + i);
    }
  }
  std::vector<ScoredName> out;
  for (const auto& [value, number] : best.take())
    out.push_back({names_[static_cast<std::size_t>(number)], value});
  return out;
}

std::vector<ScoredName> NamedRows::most_similar(std::string_view name, std::size_t count) const {
  const std::int64_t number = number_of(name);
  const std::vector<float> row = saved_->floats(variable(), number, 1);
  const auto width = static_cast<std::size_t>(width_);
  const double norm = std::sqrt(static_cast<double>(kge::dot(row.data(), row.data(), width)));
  return best(count, number, [&](const float* other) {
    const double other_norm = std::sqrt(static_cast<double>(kge::dot(other, other, width)));
    const double product = norm * other_norm;
    return product > 0 ? static_cast<double>(kge::dot(row.data(), other, width)) / product : 0;
  });
}

}  // namespace capstan::train
