// restore_point.hpp -- the checkpoint that was restored last, for what the program creates afterwards.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "protocol/descriptor.hpp"

namespace capstan::strategy {

/// Variables, counters and positions of datasets that are created after a restore take their values from the
/// checkpoint, each once. Used by the thread that made the strategy.
class RestorePoint {
 public:
  virtual ~RestorePoint() = default;

  virtual bool has_variable(const std::string& name) const = 0;
  /// Throws Error(failed_precondition) that lists in what the variable differs from the checkpoint's.
  /// REQUIRES: has_variable.
  virtual void require_fit(const protocol::VariableDescriptor& variable) const = 0;
  /// Fills a variable that was just created. Throws Error: data_loss, unavailable, deadline_exceeded,
  /// not_found (the checkpoint was deleted). REQUIRES: has_variable.
  virtual void fill(const protocol::VariableDescriptor& variable) = 0;
  /// The program has a variable that the checkpoint has not.
  virtual void lacks_variable(const std::string& name) = 0;

  /// The value of a counter that no counter has taken yet; a counter that there is none for is noted.
  virtual std::optional<std::int64_t> counter(const std::string& name) = 0;
  virtual void took_counter(const std::string& name) = 0;
  /// The position of a dataset that no dataset has taken yet.
  virtual std::optional<std::string> position(const std::string& name) const = 0;
  virtual void took_position(const std::string& name) = 0;

  /// Every variable so far has its values from the checkpoint, under its own name: a spare could fill a ps
  /// from it.
  virtual bool complete() const noexcept = 0;
  /// What the checkpoint has and the program has not, such as: variable "w".
  virtual std::vector<std::string> unmatched() const = 0;
  /// What the program has and the checkpoint has not.
  virtual std::vector<std::string> lacking() const = 0;
  /// Path of the checkpoint, for messages.
  virtual std::string path() const = 0;
};

}  // namespace capstan::strategy
