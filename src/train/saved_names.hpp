// saved_names.hpp -- the variable with the names of rows, which checkpoints hold.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "capstan/variable.hpp"
#include "train/packed_names.hpp"

namespace capstan::train {

/// Made on the coordinator, in the scope of a strategy. Training never reads it.
class SavedNames {
 public:
  /// Creates the variable on the ps. Throws Error as Variable does.
  SavedNames(std::string_view variable, const std::vector<std::string>& names);
  /// Throws Error(failed_precondition), with the first difference, unless a restored checkpoint has the same
  /// names in the same order: rows of other names would be trained.
  void check_restored(const std::vector<std::string>& names, std::string_view where) const;

 private:
  std::string variable_name_;
  Variable<std::int64_t> packed_;
};

}  // namespace capstan::train
