// gradient_filter.cpp -- one pass over a gradient; rows are copied only if one is skipped.
#include "strategy/gradient_filter.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "base/log.hpp"
#include "base/with_type.hpp"

namespace capstan::strategy {
namespace {

/// Returns the index of the first element that is NaN or infinite; `width` if there is none.
template <class T>
std::uint64_t first_not_finite(const T* row, std::uint64_t width) {
  if constexpr (!std::is_integral_v<T>) {
    for (std::uint64_t i = 0; i < width; ++i) {
      if (!std::isfinite(static_cast<Arithmetic<T>>(row[i]))) return i;
    }
  }
  return width;
}

/// Calls found(index, element, value) with the first NaN or infinite element of each row that has one, until
/// `found` returns false. `index` is the position of the row in the gradient.
template <class Found>
void find_bad_rows(const protocol::VariableDescriptor& variable, const void* gradient, std::uint64_t rows,
                   const Found& found) {
  if (!is_floating(variable.dtype)) return;
  const std::uint64_t width = variable.width();
  with_type(variable.dtype, [&]<class T>(std::type_identity<T>) {
    const auto* values = static_cast<const T*>(gradient);
    for (std::uint64_t index = 0; index < rows; ++index) {
      const T* const row = values + index * width;
      const std::uint64_t at = first_not_finite(row, width);
      if (at == width) continue;
      if (!found(index, at, static_cast<double>(static_cast<Arithmetic<T>>(row[at])))) return;
    }
  });
}

[[noreturn]] void refuse(const protocol::VariableDescriptor& variable, std::int64_t row,
                         std::uint64_t element, double value) {
  // The absolute value of NaN, because fmt prints a NaN with the sign bit set as "-nan".
  throw Error(Code::invalid_argument,
              fmt::format("push to variable \"{}\": element {} of the gradient of row {} is {}; expected "
                          "finite numbers (--nan-gradients=refuse)",
                          variable.name, element, row, std::isnan(value) ? std::abs(value) : value));
}

}  // namespace

GradientFilter::GradientFilter(const Settings& settings) {
  const std::string& word = settings.text("nan-gradients");
  rule_ = word == "refuse" ? Rule::refuse : word == "skip" ? Rule::skip : Rule::pass;
}

std::optional<GradientFilter::FiniteRows> GradientFilter::sparse(const protocol::VariableDescriptor& variable,
                                                                 std::span<const std::int64_t> ids,
                                                                 const void* gradient) {
  std::vector<std::uint64_t> bad_indices;
  find_bad_rows(variable, gradient, ids.size(),
                [&](std::uint64_t index, std::uint64_t element, double value) {
                  const std::int64_t id = ids[index];
                  if (rule_ == Rule::refuse) refuse(variable, id, element, value);
                  // An id out of range is kept: the push rejects it.
                  const bool exists = id >= 0 && static_cast<std::uint64_t>(id) < variable.rows();
                  if (variable.table || exists) bad_indices.push_back(index);
                  return true;
                });
  if (bad_indices.empty()) return std::nullopt;
  count_skipped(variable, bad_indices.size(), fmt::format("{} of {} rows", bad_indices.size(), ids.size()));
  const std::uint64_t row_bytes = variable.row_bytes();
  FiniteRows kept;
  kept.ids.reserve(ids.size() - bad_indices.size());
  kept.gradient.reserve((ids.size() - bad_indices.size()) * row_bytes);
  const auto* bytes = static_cast<const std::byte*>(gradient);
  auto next = bad_indices.begin();
  for (std::uint64_t index = 0; index < ids.size(); ++index) {
    if (next != bad_indices.end() && *next == index) {
      ++next;
      continue;
    }
    kept.ids.push_back(ids[index]);
    const std::byte* const row = bytes + index * row_bytes;
    kept.gradient.insert(kept.gradient.end(), row, row + row_bytes);
  }
  return kept;
}

bool GradientFilter::dense(const protocol::VariableDescriptor& variable, const void* gradient) {
  bool finite = true;
  find_bad_rows(variable, gradient, variable.rows(),
                [&](std::uint64_t row, std::uint64_t element, double value) {
                  if (rule_ == Rule::refuse) refuse(variable, static_cast<std::int64_t>(row), element, value);
                  finite = false;
                  return false;
                });
  if (!finite) {
    count_skipped(variable, variable.rows(), fmt::format("a dense gradient of {} rows", variable.rows()));
  }
  return finite;
}

/// Logs only the first skipped push of each variable, because a model that has diverged would fill the log.
void GradientFilter::count_skipped(const protocol::VariableDescriptor& variable, std::uint64_t rows,
                                   const std::string& what) {
  const std::lock_guard lock(mutex_);
  std::uint64_t& skipped = skipped_[variable.id];
  if (skipped == 0) {
    log::warn(
        "push to variable \"{}\": skipped {}, because of NaN or infinity; further skipped rows are counted "
        "but not logged",
        variable.name, what);
  }
  skipped += rows;
}

std::uint64_t GradientFilter::skipped_rows(std::uint32_t variable) const {
  const std::lock_guard lock(mutex_);
  const auto found = skipped_.find(variable);
  return found == skipped_.end() ? 0 : found->second;
}

}  // namespace capstan::strategy
