// named_rows.hpp -- rows of a saved model that have names: entities, relations or words.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "train/saved_rows.hpp"

namespace capstan::train {

/// A name and the score of its row; higher scores are better.
struct ScoredName {
  std::string name;
  double score = 0;
};

/// Holds the names. Reads rows when they are needed, block by block. The thread rule is that of the
/// SavedRows.
class NamedRows {
 public:
  struct Variables {
    std::string rows;
    std::string names;      // packed_names.hpp
    const char* kind = "";  // of what has the names, for error messages: "entity"
  };
  /// Reads the names, and checks that there are `rows_per_name` rows of `width` floats for each. The first
  /// rows are those of the names. Throws Error: failed_precondition without names, data_loss for another
  /// shape.
  NamedRows(std::shared_ptr<const SavedRows> saved, Variables variables, std::int64_t width,
            std::int64_t rows_per_name = 1);
  NamedRows(NamedRows&&) = default;  // a copy would refer to the names of the first object

  const std::vector<std::string>& names() const noexcept { return names_; }
  const char* kind() const noexcept { return variables_.kind; }
  const std::string& variable() const noexcept { return variables_.rows; }
  const SavedRows& saved() const noexcept { return *saved_; }

  /// Returns the number of a row. Throws Error(not_found) with similar names for an unknown name.
  std::int64_t number_of(std::string_view name) const;
  /// Throws as number_of() does.
  std::vector<float> row(std::string_view name) const;
  /// Returns all rows, also those without a name.
  std::vector<float> all() const;

  /// Returns the `count` names whose rows have the highest scores, best first, without the row `excluded`
  /// (-1: none). Of equal scores, the lower number ranks first.
  std::vector<ScoredName> best(std::size_t count, std::int64_t excluded,
                               const std::function<double(const float* row)>& score) const;
  /// Returns the `count` names whose rows have the largest cosine with that of `name`, which is excluded.
  /// Throws as number_of() does.
  std::vector<ScoredName> most_similar(std::string_view name, std::size_t count) const;

 private:
  std::shared_ptr<const SavedRows> saved_;
  Variables variables_;
  std::int64_t width_;
  std::vector<std::string> names_;
  // Views of the names above; the elements of a moved vector keep their addresses.
  std::unordered_map<std::string_view, std::int64_t> numbers_;
};

}  // namespace capstan::train
