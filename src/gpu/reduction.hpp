// reduction.hpp -- reduces one value per thread of a block (blocks.cuh), in a fixed order.
#pragma once

#include <cstdint>

#include "gpu/both.hpp"

namespace capstan::gpu {

struct Larger {
  template <class T>
  CAPSTAN_BOTH static T of(T a, T b) {
    return a < b ? b : a;  // returns `a` if either is NaN
  }
};
struct Sum {
  template <class T>
  CAPSTAN_BOTH static T of(T a, T b) {
    return a + b;
  }
};

/// Reduces one value of every thread of a block, in a fixed order. An object is the shared memory that this
/// needs. REQUIRES: the body's type Shared has it as the member `reduction`.
template <class T, std::uint32_t kThreads>
struct Reduction {
  static constexpr std::uint32_t kPartials = 32;
  T all[kThreads];
  T partials[kPartials];

  /// Replaces the member `value` of every thread's state with the result of Op over all threads.
  template <class Op, class State, class Shared, class B>
  CAPSTAN_BOTH static void run(const B& block, T State::*value) {
    block.each([&](std::uint32_t thread, State& state, Shared& shared) {
      shared.reduction.all[thread] = state.*value;
    });
    block.each([&](std::uint32_t thread, State&, Shared& shared) {
      if (thread >= kPartials) return;
      T result = shared.reduction.all[thread];
      for (std::uint32_t i = thread + kPartials; i < kThreads; i += kPartials) {
        result = Op::of(result, shared.reduction.all[i]);
      }
      shared.reduction.partials[thread] = result;
    });
    block.each([&](std::uint32_t, State& state, Shared& shared) {
      T result = shared.reduction.partials[0];
      for (std::uint32_t i = 1; i < kPartials; ++i) result = Op::of(result, shared.reduction.partials[i]);
      state.*value = result;
    });
  }
};

/// Adds the sum of `values` to `*total`. Launched with one block.
struct SumBody {
  static constexpr std::uint32_t kThreads = 256;
  struct Shared {
    Reduction<double, kThreads> reduction;
  };
  struct ThreadState {
    double sum;
  };
  const float* values;
  std::uint32_t count;
  double* total;

  template <class B>
  CAPSTAN_BOTH void operator()(const B& block, std::uint32_t) const {
    block.each([&](std::uint32_t thread, ThreadState& state, Shared&) {
      state.sum = 0;
      for (std::uint32_t i = thread; i < count; i += kThreads) state.sum += static_cast<double>(values[i]);
    });
    Reduction<double, kThreads>::run<Sum, ThreadState, Shared>(block, &ThreadState::sum);
    block.each([&](std::uint32_t thread, ThreadState& state, Shared&) {
      if (thread == 0) *total += state.sum;
    });
  }
};

}  // namespace capstan::gpu
