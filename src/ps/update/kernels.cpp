// kernels.cpp -- selects the kernel of an optimizer. Highway compiles every kernel for each vector width of
// the architecture, and selects the widest that the CPU supports at run time.
#include "ps/update/kernels.hpp"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ps/update/kernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target, so that they are compiled once per vector width.
#include "ps/update/kernel_loop.hpp"
#include "ps/update/kernel_rules.hpp"

HWY_BEFORE_NAMESPACE();
namespace capstan::ps::HWY_NAMESPACE {

template <class T>
void apply_any(const Optimizer& o, const Update<T>& u) {
  switch (o.kind) {
    case OptimizerKind::sgd:
      return for_rows(Sgd<T>(o), u);
    case OptimizerKind::adagrad:
      return for_rows(Adagrad<T>(o), u);
    case OptimizerKind::adam:
      return for_rows(Adam<T, false>(o, u.step), u);
    case OptimizerKind::momentum:
      return o.nesterov ? for_rows(Momentum<T, true>(o), u) : for_rows(Momentum<T, false>(o), u);
    case OptimizerKind::rmsprop:
      return for_rows(RmsProp<T>(o), u);
    case OptimizerKind::adamw:
      return for_rows(Adam<T, true>(o, u.step), u);
    case OptimizerKind::ftrl:
      return o.learning_rate_power == -0.5 ? for_rows(Ftrl<T, SquareRoot>(o), u)
                                           : for_rows(Ftrl<T, AnyPower>(o), u);
  }
}

void apply_float(const Optimizer& o, const Update<float>& u) { apply_any(o, u); }
void apply_double(const Optimizer& o, const Update<double>& u) { apply_any(o, u); }

}  // namespace capstan::ps::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace capstan::ps {

HWY_EXPORT(apply_float);
HWY_EXPORT(apply_double);

void apply(const Optimizer& o, const Update<float>& u) { HWY_DYNAMIC_DISPATCH(apply_float)(o, u); }
void apply(const Optimizer& o, const Update<double>& u) { HWY_DYNAMIC_DISPATCH(apply_double)(o, u); }

namespace {

template <class T>
void apply_integers(const Optimizer& o, const Update<T>& u) {
  using W = Wrapping<T>;
  const W rate = static_cast<W>(std::llround(o.learning_rate));
  for (std::uint64_t i = 0; i < u.count; ++i) {
    T* w = u.values + (u.rows != nullptr ? u.rows[i] : u.first_row + i) * u.width;
    const T* g = u.gradient_of(i);
    for (std::uint64_t j = 0; j < u.width; ++j)
      w[j] = static_cast<T>(static_cast<W>(w[j]) - rate * static_cast<W>(g[j]));
  }
}

template <class T>
void apply_halves(const Optimizer& o, const Update<T>& u) {
  constexpr std::uint64_t kBlock = 1024;
  float values[kBlock];
  float gradient[kBlock];
  for (std::uint64_t i = 0; i < u.count; ++i) {
    const std::uint64_t row = (u.rows != nullptr ? u.rows[i] : u.first_row + i) * u.width;
    for (std::uint64_t begin = 0; begin < u.width; begin += kBlock) {
      const std::uint64_t width = std::min(kBlock, u.width - begin);
      T* w = u.values + row + begin;
      const T* g = u.gradient_of(i) + begin;
      for (std::uint64_t j = 0; j < width; ++j) {
        values[j] = static_cast<float>(w[j]);
        gradient[j] = static_cast<float>(g[j]);
      }
      Update<float> block;
      block.values = values;
      block.slot0 = u.slot0 == nullptr ? nullptr : u.slot0 + row + begin;
      block.slot1 = u.slot1 == nullptr ? nullptr : u.slot1 + row + begin;
      block.width = width;
      block.count = 1;
      block.gradient = gradient;
      block.step = u.step;
      apply(o, block);
      if (u.rounding.stochastic) {
        const std::uint64_t first = static_cast<std::uint64_t>(w - u.first_value) +
                                    (static_cast<std::uint64_t>(g - u.first_gradient) << 32);
        for (std::uint64_t j = 0; j < width; ++j) w[j] = gpu::narrowed<T>(values[j], u.rounding, first + j);
      } else {
        for (std::uint64_t j = 0; j < width; ++j) w[j] = static_cast<T>(values[j]);
      }
    }
  }
}

}  // namespace

void apply(const Optimizer& o, const Update<float16>& u) { apply_halves(o, u); }
void apply(const Optimizer& o, const Update<bfloat16>& u) { apply_halves(o, u); }
void apply(const Optimizer& o, const Update<std::int64_t>& u) { apply_integers(o, u); }
void apply(const Optimizer& o, const Update<std::int32_t>& u) { apply_integers(o, u); }

}  // namespace capstan::ps
#endif
