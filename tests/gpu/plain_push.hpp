// plain_push.hpp -- reference implementation of a push to a table, one element at a time on the CPU; test
// cases.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/with_type.hpp"
#include "tests/gpu/optimizers_to_test.hpp"
#include "tests/ps/plain_update.hpp"

namespace capstan::gpu {

/// A table with its slots, and the expected values.
template <class T>
struct PlainTable {
  using A = Arithmetic<T>;
  std::uint64_t rows, width;
  std::vector<T> values;
  std::vector<A> slot0, slot1;
  std::vector<ps::PlainElement> expected;

  PlainTable(std::uint64_t row_count, std::uint64_t row_width, const Optimizer& o, unsigned seed)
      : rows(row_count),
        width(row_width),
        values(rows * width),
        slot0(rows * width, static_cast<A>(first_slot(o))),
        slot1(rows * width),
        expected(rows * width) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = T(std::is_integral_v<T> ? static_cast<A>(static_cast<int>(random() % 100))
                                          : static_cast<A>(normal(random)));
      expected[i] = {static_cast<double>(static_cast<A>(values[i])), static_cast<double>(slot0[i]), 0};
    }
  }

  /// Skips rows that are not in the table, and sums the gradients of duplicate rows.
  void push(const Optimizer& o, const std::vector<std::uint32_t>& named, const std::vector<T>& gradient,
            std::int64_t step) {
    std::map<std::uint32_t, std::vector<double>> sums;
    for (std::size_t i = 0; i < named.size(); ++i) {
      if (named[i] >= rows) continue;
      auto& sum = sums.try_emplace(named[i], width, 0.0).first->second;
      for (std::uint64_t j = 0; j < width; ++j) {
        sum[j] += static_cast<double>(static_cast<A>(gradient[i * width + j]));
      }
    }
    for (const auto& [row, sum] : sums) {
      for (std::uint64_t j = 0; j < width; ++j) {
        ps::PlainElement& element = expected[row * width + j];
        ps::plain_update(o, element, sum[j], step);
        // A 16-bit table is rounded after every push.
        if constexpr (!std::is_same_v<T, A>) {
          element.w = static_cast<double>(static_cast<float>(T(static_cast<float>(element.w))));
        }
      }
    }
  }
};

/// Rows of test pushes, by the name of the case.
inline std::map<std::string, std::vector<std::uint32_t>> pushes_to_try(std::uint32_t rows, unsigned seed) {
  std::mt19937 random(seed);
  std::map<std::string, std::vector<std::uint32_t>> cases;
  cases["none"] = {};
  cases["one"] = {rows / 2};
  cases["the last row"] = {rows - 1};
  cases["each once, backwards"] = {};
  for (std::uint32_t row = rows; row-- > 0;) cases["each once, backwards"].push_back(row);
  cases["all the same"] = std::vector<std::uint32_t>(777, rows - 1);
  cases["two alternating"] = {};
  for (std::uint32_t i = 0; i < 300; ++i) cases["two alternating"].push_back(i % 2 * (rows - 1));
  cases["at random"] = {};
  for (int i = 0; i < 1000; ++i) cases["at random"].push_back(random() % rows);
  cases["some out of range"] = {0, rows, rows - 1, 0xFFFFFFFF, rows + 7, 0};
  return cases;
}

/// Returns gradients that are so small that sums of many gradients stay in the usual range.
template <class T>
std::vector<T> small_gradient(std::size_t count, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<T> gradient(count);
  for (T& g : gradient) {
    if constexpr (std::is_integral_v<T>) {
      g = static_cast<T>(static_cast<int>(random() % 9) - 4);
    } else {
      g = T(static_cast<Arithmetic<T>>(normal(random) / 16));
    }
  }
  return gradient;
}

/// Returns the smallest i such that named[i] is not in the table; kNoBadRow if there is none.
inline std::uint32_t first_bad_of(const std::vector<std::uint32_t>& named, std::uint32_t rows) {
  for (std::uint32_t i = 0; i < named.size(); ++i) {
    if (named[i] >= rows) return i;
  }
  return 0xFFFFFFFF;
}

}  // namespace capstan::gpu
