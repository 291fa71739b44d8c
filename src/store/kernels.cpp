// kernels.cpp -- one loop a kind of optimizer, compiled by Highway for every vector width of this
// architecture; the widest that the CPU has is chosen at run time.
#include "store/kernels.hpp"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "store/kernels.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace capstan::store::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Rows ahead of the one in work whose first lines are fetched; covers a memory access at these rates.
constexpr std::uint64_t kPrefetchRows = 4;

template <class T>
std::uint64_t row_of(const Update<T>& u, std::uint64_t i) {
  return u.rows != nullptr ? u.rows[i] : u.first_row + i;
}

template <class T>
void prefetch(const Update<T>& u, std::uint64_t i) {
  if (i >= u.count) return;
  const std::uint64_t at = row_of(u, i) * u.width;
  hwy::Prefetch(u.values + at);
  if (u.slot0 != nullptr) hwy::Prefetch(u.slot0 + at);
  if (u.slot1 != nullptr) hwy::Prefetch(u.slot1 + at);
}

/// Calls `element(d, w, s0, s1, g)` for whole vectors of each row, then for single elements with a one-lane
/// tag: the same arithmetic for both.
template <class T, class Element>
void for_rows(const Update<T>& u, const Element& element) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  const std::uint64_t lanes = hn::Lanes(d);
  for (std::uint64_t i = 0; i < u.count; ++i) {
    if (u.rows != nullptr) prefetch(u, i + kPrefetchRows);
    const std::uint64_t at = row_of(u, i) * u.width;
    T* w = u.values + at;
    T* s0 = u.slot0 != nullptr ? u.slot0 + at : nullptr;
    T* s1 = u.slot1 != nullptr ? u.slot1 + at : nullptr;
    const T* g = u.gradient + i * u.width;
    std::uint64_t j = 0;
    const auto plus = [](T* slot, std::uint64_t offset) { return slot == nullptr ? nullptr : slot + offset; };
    for (; j + lanes <= u.width; j += lanes) element(d, w + j, plus(s0, j), plus(s1, j), g + j);
    for (; j < u.width; ++j) element(one, w + j, plus(s0, j), plus(s1, j), g + j);
  }
}

template <class T>
void sgd(const Optimizer& o, const Update<T>& u) {
  for_rows(u, [rate = static_cast<T>(o.learning_rate)](auto d, T* w, T*, T*, const T* g) {
    hn::StoreU(hn::NegMulAdd(hn::Set(d, rate), hn::LoadU(d, g), hn::LoadU(d, w)), d, w);
  });
}

template <class T>
void adagrad(const Optimizer& o, const Update<T>& u) {
  const T rate = static_cast<T>(o.learning_rate);
  const T epsilon = static_cast<T>(o.epsilon);
  for_rows(u, [rate, epsilon](auto d, T* w, T* s0, T*, const T* g) {
    const auto gradient = hn::LoadU(d, g);
    const auto sum = hn::MulAdd(gradient, gradient, hn::LoadU(d, s0));
    hn::StoreU(sum, d, s0);
    const auto step =
        hn::Div(hn::Mul(hn::Set(d, rate), gradient), hn::Add(hn::Sqrt(sum), hn::Set(d, epsilon)));
    hn::StoreU(hn::Sub(hn::LoadU(d, w), step), d, w);
  });
}

template <class T>
void adam(const Optimizer& o, const Update<T>& u) {
  const double t = static_cast<double>(u.step);
  const T rate =
      static_cast<T>(o.learning_rate * std::sqrt(1 - std::pow(o.beta2, t)) / (1 - std::pow(o.beta1, t)));
  const T beta1 = static_cast<T>(o.beta1);
  const T beta2 = static_cast<T>(o.beta2);
  const T epsilon = static_cast<T>(o.epsilon);
  for_rows(u, [=](auto d, T* w, T* s0, T* s1, const T* g) {
    const auto gradient = hn::LoadU(d, g);
    const auto m = hn::MulAdd(hn::Set(d, beta1), hn::LoadU(d, s0), hn::Mul(hn::Set(d, 1 - beta1), gradient));
    const auto v = hn::MulAdd(hn::Set(d, beta2), hn::LoadU(d, s1),
                              hn::Mul(hn::Set(d, 1 - beta2), hn::Mul(gradient, gradient)));
    hn::StoreU(m, d, s0);
    hn::StoreU(v, d, s1);
    const auto step = hn::Div(hn::Mul(hn::Set(d, rate), m), hn::Add(hn::Sqrt(v), hn::Set(d, epsilon)));
    hn::StoreU(hn::Sub(hn::LoadU(d, w), step), d, w);
  });
}

template <class T>
void apply_any(const Optimizer& o, const Update<T>& u) {
  switch (o.kind) {
    case OptimizerKind::sgd:
      return sgd(o, u);
    case OptimizerKind::adagrad:
      return adagrad(o, u);
    case OptimizerKind::adam:
      return adam(o, u);
  }
}

void apply_float(const Optimizer& o, const Update<float>& u) { apply_any(o, u); }
void apply_double(const Optimizer& o, const Update<double>& u) { apply_any(o, u); }

}  // namespace capstan::store::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace capstan::store {

HWY_EXPORT(apply_float);
HWY_EXPORT(apply_double);

void apply(const Optimizer& o, const Update<float>& u) { HWY_DYNAMIC_DISPATCH(apply_float)(o, u); }
void apply(const Optimizer& o, const Update<double>& u) { HWY_DYNAMIC_DISPATCH(apply_double)(o, u); }

void apply(const Optimizer& o, const Update<std::int64_t>& u) {
  const std::int64_t rate = std::llround(o.learning_rate);
  for (std::uint64_t i = 0; i < u.count; ++i) {
    std::int64_t* w = u.values + (u.rows != nullptr ? u.rows[i] : u.first_row + i) * u.width;
    for (std::uint64_t j = 0; j < u.width; ++j) w[j] -= rate * u.gradient[i * u.width + j];
  }
}

}  // namespace capstan::store
#endif
