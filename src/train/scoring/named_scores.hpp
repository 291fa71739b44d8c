// named_scores.hpp -- names of rows in requests and answers.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "train/named_rows.hpp"

namespace capstan::train {

/// Returns a list of objects, each with a name in the member `kind` and a score in the member `measure`.
inline nlohmann::json ranked(std::span<const ScoredName> names, const std::string& kind,
                             const std::string& measure) {
  nlohmann::json list = nlohmann::json::array();
  for (const ScoredName& one : names) list.push_back({{kind, one.name}, {measure, one.score}});
  return list;
}

/// Throws Error(not_found), with similar names, for an unknown name.
inline std::vector<std::int64_t> numbers_of(const NamedRows& rows, std::span<const std::string> names) {
  std::vector<std::int64_t> numbers;
  for (const std::string& name : names) numbers.push_back(rows.number_of(name));
  return numbers;
}

}  // namespace capstan::train
