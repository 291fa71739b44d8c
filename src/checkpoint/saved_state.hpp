// saved_state.hpp -- what a checkpoint holds besides variables: where something stands, by name.
#pragma once

#include <string>

namespace capstan::checkpoint {

/// Registered with Strategy::add_state. Used by the thread that made the strategy.
class SavedState {
 public:
  virtual ~SavedState() = default;

  /// Waits until what is under way of it has ended, and lets nothing new begin until release(). Throws what
  /// was wrong with what ended; it is released then.
  virtual void hold() = 0;
  virtual void release() noexcept = 0;
  /// A JSON value.
  virtual std::string position() const = 0;
  /// Throws Error when restore() would; changes nothing.
  virtual void check(const std::string& position) const = 0;
  virtual void restore(const std::string& position) = 0;
};

}  // namespace capstan::checkpoint
