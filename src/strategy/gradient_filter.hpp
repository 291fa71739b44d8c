// gradient_filter.hpp -- what becomes of NaN and infinity in what a rank pushes: --nan-gradients.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/settings.hpp"
#include "protocol/descriptor.hpp"

namespace capstan::strategy {

/// Looks at gradients before anything of them is sent. Thread-safe.
class GradientFilter {
 public:
  explicit GradientFilter(const Settings& settings);

  /// Everything is sent as it is, unseen.
  bool passes_all() const noexcept { return rule_ == Rule::pass; }

  /// The part of a push that the filter keeps.
  struct Kept {
    std::vector<std::int64_t> ids;
    std::vector<std::byte> gradient;
  };
  /// Nothing when all of it may be sent. Throws Error(invalid_argument) where NaN and infinity are refused.
  std::optional<Kept> sparse(const protocol::VariableDescriptor& variable, std::span<const std::int64_t> ids,
                             const void* gradient);
  /// Whether it may be sent. Throws as above.
  bool dense(const protocol::VariableDescriptor& variable, const void* gradient);

  /// Rows of the variable that were left out so far.
  std::uint64_t skipped_rows(std::uint32_t variable) const;

 private:
  enum class Rule : std::uint8_t { pass, refuse, skip };

  void count(const protocol::VariableDescriptor& variable, std::uint64_t rows, std::uint64_t of);

  Rule rule_;
  mutable std::mutex mutex_;
  std::map<std::uint32_t, std::uint64_t> skipped_;  // rows, by variable
};

}  // namespace capstan::strategy
