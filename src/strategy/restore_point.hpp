// restore_point.hpp -- interface of the checkpoint that was restored last.
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
  /// Throws Error(failed_precondition) that lists the differences between the variable and the checkpoint's.
  /// REQUIRES: has_variable.
  virtual void require_fit(const protocol::VariableDescriptor& variable) const = 0;
  /// Fills a variable that was just created. Throws Error: data_loss, unavailable, deadline_exceeded,
  /// not_found (the checkpoint was deleted). REQUIRES: has_variable.
  virtual void fill(const protocol::VariableDescriptor& variable) = 0;
  /// Notes a variable that the checkpoint does not have.
  virtual void lacks_variable(const std::string& name) = 0;

  /// Returns the value if no counter has taken it yet. Notes a counter that the checkpoint does not have.
  virtual std::optional<std::int64_t> counter(const std::string& name) = 0;
  virtual void note_counter_restored(const std::string& name) = 0;
  /// Returns the position if no dataset has taken it yet.
  virtual std::optional<std::string> position(const std::string& name) const = 0;
  virtual void note_position_restored(const std::string& name) = 0;

  /// Returns true if every variable so far has its values from the checkpoint, under its own name: a spare
  /// can restore a ps from it.
  virtual bool complete() const noexcept = 0;
  /// Lists contents of the checkpoint that the program has not created, such as: variable "w".
  virtual std::vector<std::string> unmatched() const = 0;
  /// Lists variables and counters of the program that the checkpoint does not have.
  virtual std::vector<std::string> lacking() const = 0;
  /// Returns the path of the checkpoint, for messages.
  virtual std::string path() const = 0;
};

}  // namespace capstan::strategy
