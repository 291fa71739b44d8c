// reduce_op.hpp -- SUM or MEAN, and along which axes.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "capstan/export.hpp"

namespace capstan {

/// What becomes of the values of several replicas. `ReduceOp::SUM` and `ReduceOp::MEAN` are known to the
/// compiler: the sum of integers is an integer, their mean a double, as in TensorFlow. An operation that is
/// known only at run time, a ReduceOp or a word, gives a double for integers in both cases.
class CAPSTAN_API ReduceOp {
 public:
  struct Sum {};
  struct Mean {};
  static constexpr Sum SUM{};
  static constexpr Mean MEAN{};

  constexpr ReduceOp(Sum) noexcept {}
  constexpr ReduceOp(Mean) noexcept : mean_(true) {}
  /// "SUM" or "MEAN" in any case. Throws Error(invalid_argument) for another word.
  ReduceOp(std::string_view word);
  ReduceOp(const char* word) : ReduceOp(std::string_view(word)) {}
  ReduceOp(const std::string& word) : ReduceOp(std::string_view(word)) {}

  constexpr bool mean() const noexcept { return mean_; }
  constexpr std::string_view name() const noexcept { return mean_ ? "MEAN" : "SUM"; }
  friend bool operator==(const ReduceOp&, const ReduceOp&) = default;

 private:
  bool mean_ = false;
};

/// One axis, or several: `0`, `-1`, `{0, 1}`, `std::tuple{0, 2}`. Negative ones count from the last. An axis
/// that is no integer does not compile.
class CAPSTAN_API Axes {
 public:
  template <std::integral I>
  requires(!std::is_same_v<I, bool>) Axes(I axis) : axes_{static_cast<std::int64_t>(axis)} {}
  Axes(std::initializer_list<std::int64_t> axes) : axes_(axes) {}
  Axes(std::vector<std::int64_t> axes) : axes_(std::move(axes)) {}
  template <std::integral... I>
  Axes(const std::tuple<I...>& axes)
      : axes_(std::apply([](I... axis) { return std::vector<std::int64_t>{axis...}; }, axes)) {}
  template <std::floating_point F>
  Axes(F axis) = delete;

  /// No axis is named: values are combined across replicas alone.
  bool empty() const noexcept { return axes_.empty(); }
  /// For each axis of an array of this rank whether it is named. Throws Error(invalid_argument) for one that
  /// the array does not have, and for one that is named twice.
  std::vector<bool> named(std::size_t rank) const;
  /// " along axis 0, -1"; "" for none.
  std::string along() const;

 private:
  std::vector<std::int64_t> axes_;
};

}  // namespace capstan
