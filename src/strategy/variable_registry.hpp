// variable_registry.hpp -- the variables of a strategy, in order of creation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "strategy/context.hpp"

namespace capstan::strategy {

/// Variables are added, never changed or removed. One thread creates variables, and is the only one that may
/// call require_new() and add(); everything else is thread-safe.
class VariableRegistry {
 public:
  enum class Names : std::uint8_t {
    unique,
    reusable,  // a variable hides earlier ones of its name
  };
  explicit VariableRegistry(Names names) : names_may_repeat_(names == Names::reusable) {}

  /// Throws Error: already_exists if the name is in use, invalid_argument if a checkpoint could not hold it
  /// beside the other names.
  void require_new(const std::string& name) const;
  void add(std::shared_ptr<const BoundVariable> variable);

  /// Returns the variables without the first `known` ones.
  std::vector<std::shared_ptr<const BoundVariable>> all(std::size_t known = 0) const;
  /// Returns the newest variable of this name; null if there is none.
  std::shared_ptr<const BoundVariable> find(const std::string& name) const;
  /// Returns the numbers of all variables.
  std::vector<std::uint32_t> ids() const;

 private:
  const bool names_may_repeat_;
  std::set<std::string> names_;  // of the thread that creates variables
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<const BoundVariable>> variables_;
};

}  // namespace capstan::strategy
