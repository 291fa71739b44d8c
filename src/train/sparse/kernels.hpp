// kernels.hpp -- loops of the factorization machine over the features of an example, compiled for several
// instruction sets. The best one is selected at run time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace capstan::train {

/// The features of an example and the factors of their rows: `factors` floats per slot.
struct FactorTerms {
  const std::uint32_t* slots = nullptr;
  const float* values = nullptr;  // nullptr: all are 1
  std::size_t count = 0;
  const float* rows = nullptr;
  std::size_t factors = 0;
};

/// Sets sums[f] to sum_i v_if x_i. Returns sum_if (v_if x_i)^2.
double sum_factors(const FactorTerms& terms, double* sums);

/// Adds slope * x_i * (sums[f] - v_if x_i) to gradients[slot * factors + f] for each feature i.
void add_factor_gradients(const FactorTerms& terms, const double* sums, double slope, double* gradients);

}  // namespace capstan::train
