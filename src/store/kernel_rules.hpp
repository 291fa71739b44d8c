// kernel_rules.hpp -- the update rules of optimizers.hpp on one vector. Only for kernels.cpp.
//
// A rule has kSlots, constants that it works out once, and a call that changes the value w and the first
// kSlots of the slots a and b, given the gradient g.
#if defined(CAPSTAN_STORE_KERNEL_RULES_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef CAPSTAN_STORE_KERNEL_RULES_HPP
#undef CAPSTAN_STORE_KERNEL_RULES_HPP
#else
#define CAPSTAN_STORE_KERNEL_RULES_HPP
#endif

#include <hwy/highway.h>

#include <cmath>
#include <cstdint>

#include "capstan/optimizers.hpp"

HWY_BEFORE_NAMESPACE();
namespace capstan::store::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
struct Sgd {
  static constexpr int kSlots = 0;
  explicit Sgd(const Optimizer& o) : rate(static_cast<T>(o.learning_rate)) {}
  template <class D, class V>
  HWY_INLINE void operator()(D d, V g, V& w, V&, V&) const {
    w = hn::NegMulAdd(hn::Set(d, rate), g, w);
  }
  T rate;
};

template <class T, bool kNesterov>
struct Momentum {
  static constexpr int kSlots = 1;
  explicit Momentum(const Optimizer& o)
      : rate(static_cast<T>(o.learning_rate)), momentum(static_cast<T>(o.momentum)) {}
  template <class D, class V>
  HWY_INLINE void operator()(D d, V g, V& w, V& velocity, V&) const {
    const V step = hn::Mul(hn::Set(d, rate), g);
    velocity = hn::MulSub(hn::Set(d, momentum), velocity, step);
    if constexpr (kNesterov) {
      w = hn::Add(w, hn::MulSub(hn::Set(d, momentum), velocity, step));
    } else {
      w = hn::Add(w, velocity);
    }
  }
  T rate, momentum;
};

template <class T>
struct Adagrad {
  static constexpr int kSlots = 1;
  explicit Adagrad(const Optimizer& o)
      : rate(static_cast<T>(o.learning_rate)), epsilon(static_cast<T>(o.epsilon)) {}
  template <class D, class V>
  HWY_INLINE void operator()(D d, V g, V& w, V& sum, V&) const {
    sum = hn::MulAdd(g, g, sum);
    w = hn::Sub(w, hn::Div(hn::Mul(hn::Set(d, rate), g), hn::Add(hn::Sqrt(sum), hn::Set(d, epsilon))));
  }
  T rate, epsilon;
};

template <class T>
struct RmsProp {
  static constexpr int kSlots = 1;
  explicit RmsProp(const Optimizer& o)
      : rate(static_cast<T>(o.learning_rate)),
        rho(static_cast<T>(o.rho)),
        one_minus_rho(static_cast<T>(1 - o.rho)),
        epsilon(static_cast<T>(o.epsilon)) {}
  template <class D, class V>
  HWY_INLINE void operator()(D d, V g, V& w, V& mean, V&) const {
    mean = hn::MulAdd(hn::Set(d, rho), mean, hn::Mul(hn::Set(d, one_minus_rho), hn::Mul(g, g)));
    w = hn::Sub(w, hn::Div(hn::Mul(hn::Set(d, rate), g), hn::Sqrt(hn::Add(mean, hn::Set(d, epsilon)))));
  }
  T rate, rho, one_minus_rho, epsilon;
};

/// With kDecay AdamW.
template <class T, bool kDecay>
struct Adam {
  static constexpr int kSlots = 2;
  Adam(const Optimizer& o, std::int64_t step)
      : beta1(static_cast<T>(o.beta1)),
        beta2(static_cast<T>(o.beta2)),
        one_minus_beta1(static_cast<T>(1 - o.beta1)),
        one_minus_beta2(static_cast<T>(1 - o.beta2)),
        epsilon(static_cast<T>(o.epsilon)),
        kept(static_cast<T>(1 - o.learning_rate * o.weight_decay)) {
    const double t = static_cast<double>(step);
    rate = static_cast<T>(o.learning_rate * std::sqrt(1 - std::pow(o.beta2, t)) / (1 - std::pow(o.beta1, t)));
  }
  template <class D, class V>
  HWY_INLINE void operator()(D d, V g, V& w, V& m, V& v) const {
    m = hn::MulAdd(hn::Set(d, beta1), m, hn::Mul(hn::Set(d, one_minus_beta1), g));
    v = hn::MulAdd(hn::Set(d, beta2), v, hn::Mul(hn::Set(d, one_minus_beta2), hn::Mul(g, g)));
    const V step = hn::Div(hn::Mul(hn::Set(d, rate), m), hn::Add(hn::Sqrt(v), hn::Set(d, epsilon)));
    if constexpr (kDecay) {
      w = hn::MulSub(hn::Set(d, kept), w, step);
    } else {
      w = hn::Sub(w, step);
    }
  }
  T rate, beta1, beta2, one_minus_beta1, one_minus_beta2, epsilon, kept;
};

/// x^-learning_rate_power for FTRL: its usual value, and any other one, element by element.
template <class T>
struct SquareRoot {
  explicit SquareRoot(const Optimizer&) {}
  template <class D, class V>
  HWY_INLINE V operator()(D, V x) const {
    return hn::Sqrt(x);
  }
};
template <class T>
struct AnyPower {
  explicit AnyPower(const Optimizer& o) : power(static_cast<T>(-o.learning_rate_power)) {}
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    HWY_ALIGN T lanes[HWY_MAX_BYTES / sizeof(T)];
    hn::Store(x, d, lanes);
    for (std::size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = std::pow(lanes[i], power);
    return hn::Load(d, lanes);
  }
  T power;
};

template <class T, template <class> class Power>
struct Ftrl {
  static constexpr int kSlots = 2;
  explicit Ftrl(const Optimizer& o)
      : power(o),
        per_rate(static_cast<T>(1 / o.learning_rate)),
        l1(static_cast<T>(o.l1)),
        divisor(static_cast<T>(o.beta / o.learning_rate + 2 * o.l2)),
        shrinkage(static_cast<T>(2 * o.l2_shrinkage)) {}
  template <class D, class V>
  HWY_INLINE void operator()(D d, V g, V& w, V& sum, V& linear) const {
    const V old = power(d, sum);
    sum = hn::MulAdd(g, g, sum);
    const V now = power(d, sum);
    const V sigma = hn::Mul(hn::Sub(now, old), hn::Set(d, per_rate));
    linear = hn::Add(linear, hn::MulAdd(hn::Sub(hn::Set(d, shrinkage), sigma), w, g));
    // Of two equal numbers the difference is 0 and the quotient exactly 0.
    const V clipped = hn::Min(hn::Max(linear, hn::Set(d, -l1)), hn::Set(d, l1));
    const V by = hn::MulAdd(now, hn::Set(d, per_rate), hn::Set(d, divisor));
    w = hn::IfThenElse(hn::Gt(by, hn::Zero(d)), hn::Div(hn::Sub(clipped, linear), by), w);
  }
  Power<T> power;
  T per_rate, l1, divisor, shrinkage;
};

}  // namespace capstan::store::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
