// kernels.cpp -- see kernels.hpp. The first part is compiled once for each instruction set.
#include "train/sparse/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "train/sparse/kernels.cpp"
#include <hwy/foreach_target.h>  // must precede the one below to compile this file once per target

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace capstan::train::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Loads floats as doubles.
template <class D>
HWY_INLINE hn::Vec<D> load_doubles(D d, const float* from) {
  return hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, D>(), from));
}

/// Sums of the factors from f on, as many as a vector has.
template <class D>
HWY_INLINE hn::Vec<D> sum_columns(D d, const FactorTerms& terms, std::size_t f, double* sums) {
  auto sum = hn::Zero(d), squares = hn::Zero(d);
  for (std::size_t k = 0; k < terms.count; ++k) {
    auto term = load_doubles(d, terms.rows + terms.slots[k] * terms.factors + f);
    if (terms.values != nullptr) term = hn::Mul(term, hn::Set(d, static_cast<double>(terms.values[k])));
    sum = hn::Add(sum, term);
    squares = hn::MulAdd(term, term, squares);
  }
  hn::StoreU(sum, d, sums + f);
  return squares;
}

double SumFactors(const FactorTerms& terms, double* sums) {
  const hn::ScalableTag<double> d;
  const hn::CappedTag<double, 1> one;
  const std::size_t lanes = hn::Lanes(d);
  auto squares = hn::Zero(d);
  std::size_t f = 0;
  for (; f + lanes <= terms.factors; f += lanes) squares = hn::Add(squares, sum_columns(d, terms, f, sums));
  double sum = hn::GetLane(hn::SumOfLanes(d, squares));
  for (; f < terms.factors; ++f) sum += hn::GetLane(sum_columns(one, terms, f, sums));
  return sum;
}

template <class D>
HWY_INLINE void add_columns(D d, const FactorTerms& terms, std::size_t f, const double* sums, double slope,
                            double* gradients) {
  const auto sum = hn::LoadU(d, sums + f);
  for (std::size_t k = 0; k < terms.count; ++k) {
    const std::size_t at = terms.slots[k] * terms.factors + f;
    const double x = terms.values != nullptr ? static_cast<double>(terms.values[k]) : 1;
    const auto rest = hn::NegMulAdd(load_doubles(d, terms.rows + at), hn::Set(d, x), sum);
    hn::StoreU(hn::MulAdd(hn::Set(d, slope * x), rest, hn::LoadU(d, gradients + at)), d, gradients + at);
  }
}

void AddFactorGradients(const FactorTerms& terms, const double* sums, double slope, double* gradients) {
  const hn::ScalableTag<double> d;
  const hn::CappedTag<double, 1> one;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t f = 0;
  for (; f + lanes <= terms.factors; f += lanes) add_columns(d, terms, f, sums, slope, gradients);
  for (; f < terms.factors; ++f) add_columns(one, terms, f, sums, slope, gradients);
}

}  // namespace capstan::train::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace capstan::train {

HWY_EXPORT(SumFactors);
HWY_EXPORT(AddFactorGradients);

double sum_factors(const FactorTerms& terms, double* sums) {
  return HWY_DYNAMIC_DISPATCH(SumFactors)(terms, sums);
}

void add_factor_gradients(const FactorTerms& terms, const double* sums, double slope, double* gradients) {
  HWY_DYNAMIC_DISPATCH(AddFactorGradients)(terms, sums, slope, gradients);
}

}  // namespace capstan::train
#endif
