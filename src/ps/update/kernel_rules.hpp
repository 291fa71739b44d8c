// kernel_rules.hpp -- update rules of the optimizers on one SIMD vector. Only for kernels.cpp.
#if defined(CAPSTAN_PS_KERNEL_RULES_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef CAPSTAN_PS_KERNEL_RULES_HPP
#undef CAPSTAN_PS_KERNEL_RULES_HPP
#else
#define CAPSTAN_PS_KERNEL_RULES_HPP
#endif

#include <hwy/highway.h>

#include <cmath>
#include <cstdint>

#include "capstan/optimizers.hpp"

HWY_BEFORE_NAMESPACE();
namespace capstan::ps::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Computes x^power per element with std::pow.
template <class D, class V, class T>
HWY_INLINE V elementwise_pow(D d, V x, T power) {
  HWY_ALIGN T lanes[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(x, d, lanes);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = std::pow(lanes[i], power);
  return hn::Load(d, lanes);
}

#define CAPSTAN_RULE HWY_INLINE
#include "base/update_rules.inc"
#undef CAPSTAN_RULE

}  // namespace capstan::ps::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
