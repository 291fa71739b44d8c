// reduction.hpp -- one value of all threads of a block (blocks.cuh), in an order that is always the same.
#pragma once

#include <cstdint>

#include "gpu/both.hpp"

namespace capstan::gpu {

struct Larger {
  template <class T>
  CAPSTAN_BOTH static T of(T a, T b) {
    return a < b ? b : a;  // a that is not a number stays
  }
};
struct Sum {
  template <class T>
  CAPSTAN_BOTH static T of(T a, T b) {
    return a + b;
  }
};

/// Values of all threads in one, in an order that is always the same.
template <class T, std::uint32_t kThreads>
struct Reduction {
  static constexpr std::uint32_t kFew = 32;
  T all[kThreads];
  T few[kFew];

  /// Turns every thread's mine.*value into the result.
  template <class Op, class Mine, class Shared, class B>
  CAPSTAN_BOTH static void run(const B& block, T Mine::*value) {
    block.each([&](std::uint32_t thread, Mine& mine, Shared& shared) {
      shared.reduction.all[thread] = mine.*value;
    });
    block.each([&](std::uint32_t thread, Mine&, Shared& shared) {
      if (thread >= kFew) return;
      T result = shared.reduction.all[thread];
      for (std::uint32_t i = thread + kFew; i < kThreads; i += kFew) {
        result = Op::of(result, shared.reduction.all[i]);
      }
      shared.reduction.few[thread] = result;
    });
    block.each([&](std::uint32_t, Mine& mine, Shared& shared) {
      T result = shared.reduction.few[0];
      for (std::uint32_t i = 1; i < kFew; ++i) result = Op::of(result, shared.reduction.few[i]);
      mine.*value = result;
    });
  }
};

/// One block: adds floats to a total.
struct SumBody {
  static constexpr std::uint32_t kThreads = 256;
  struct Shared {
    Reduction<double, kThreads> reduction;
  };
  struct Mine {
    double sum;
  };
  const float* values;
  std::uint32_t count;
  double* total;

  template <class B>
  CAPSTAN_BOTH void operator()(const B& block, std::uint32_t) const {
    block.each([&](std::uint32_t thread, Mine& mine, Shared&) {
      mine.sum = 0;
      for (std::uint32_t i = thread; i < count; i += kThreads) mine.sum += static_cast<double>(values[i]);
    });
    Reduction<double, kThreads>::run<Sum, Mine, Shared>(block, &Mine::sum);
    block.each([&](std::uint32_t thread, Mine& mine, Shared&) {
      if (thread == 0) *total += mine.sum;
    });
  }
};

}  // namespace capstan::gpu
