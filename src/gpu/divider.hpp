// divider.hpp -- divides many numbers by the same divisor, by multiplication.
#pragma once

#include <cstdint>

#include "gpu/both.hpp"

namespace capstan::gpu {

/// Divides numbers below 2^31 by multiplying with 2^(31 + shift) / divisor, rounded up (Granlund, Montgomery:
/// "Division by invariant integers using multiplication", PLDI 1994).
class Divider {
 public:
  /// REQUIRES: 1 <= divisor < 2^31.
  explicit Divider(std::uint32_t divisor) : divisor_(divisor) {
    while ((std::uint64_t{1} << shift_) < divisor) ++shift_;
    factor_ = static_cast<std::uint32_t>(((std::uint64_t{1} << (31 + shift_)) + divisor - 1) / divisor);
  }

  struct Result {
    std::uint32_t quotient, remainder;
  };
  CAPSTAN_BOTH Result operator()(std::uint32_t number) const {
#ifdef __CUDA_ARCH__
    const std::uint32_t quotient = __umulhi(2 * number, factor_) >> shift_;
#else
    const auto quotient = static_cast<std::uint32_t>((std::uint64_t{2 * number} * factor_) >> 32) >> shift_;
#endif
    return {quotient, number - quotient * divisor_};
  }
  CAPSTAN_BOTH std::uint32_t divisor() const { return divisor_; }

 private:
  std::uint32_t divisor_;
  std::uint32_t shift_ = 0;  // log2 of the divisor, rounded up
  std::uint32_t factor_;
};

}  // namespace capstan::gpu
