// gradient_filter.hpp -- handles NaN and infinity in pushed gradients, as --nan-gradients says.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/settings.hpp"
#include "protocol/descriptor.hpp"

namespace capstan::strategy {

/// Checks gradients before they are sent. Thread-safe.
class GradientFilter {
 public:
  explicit GradientFilter(const Settings& settings);

  /// Returns true if gradients are sent unchecked.
  bool passes_all() const noexcept { return rule_ == Rule::pass; }
  /// Returns true if some gradients are not sent.
  bool skips() const noexcept { return rule_ == Rule::skip; }

  /// The finite rows of a push.
  struct FiniteRows {
    std::vector<std::int64_t> ids;
    std::vector<std::byte> gradient;
  };
  /// Returns nullopt if every row may be sent. Throws Error(invalid_argument) if NaN and infinity are
  /// refused.
  std::optional<FiniteRows> sparse(const protocol::VariableDescriptor& variable,
                                   std::span<const std::int64_t> ids, const void* gradient);
  /// Returns true if the gradient may be sent. Throws as above.
  bool dense(const protocol::VariableDescriptor& variable, const void* gradient);

  /// Returns the number of rows of the variable that were skipped so far.
  std::uint64_t skipped_rows(std::uint32_t variable) const;

 private:
  enum class Rule : std::uint8_t { pass, refuse, skip };

  /// Counts skipped rows; `what` describes them in the log.
  void count_skipped(const protocol::VariableDescriptor& variable, std::uint64_t rows,
                     const std::string& what);

  Rule rule_;
  mutable std::mutex mutex_;
  std::map<std::uint32_t, std::uint64_t> skipped_;  // rows, by variable
};

}  // namespace capstan::strategy
