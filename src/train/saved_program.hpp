// saved_program.hpp -- which program saved a model, and with which properties.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "train/saved_rows.hpp"

namespace capstan::train {

/// What `capstan train` saved beside the variables.
struct SavedProgram {
  std::string program = {};      // "train kge"; empty if no program of `capstan train` saved the model
  nlohmann::json identity = {};  // properties by name
  std::string path = {};         // for error messages
  /// Throws Error(failed_precondition) if the property is missing.
  std::string property(const std::string& name) const;
  /// Throws as property() does, and Error(data_loss) for another text than a number from 0.
  std::int64_t number(const std::string& name) const;
  /// The text for errors: "`capstan train kge`", or "another program".
  std::string description() const;
};

SavedProgram read_saved_program(const SavedRows& saved);
/// Throws Error(failed_precondition) if another program than `expected` saved the rows.
SavedProgram read_saved_program(const SavedRows& saved, std::string_view expected);

}  // namespace capstan::train
