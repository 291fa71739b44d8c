// sampler.hpp -- draws rows with given probabilities in constant time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace capstan::train::word2vec {

/// The alias method (Walker 1977), with the construction of Vose (1991).
class AliasSampler {
 public:
  /// REQUIRES: at least one weight, none is negative, their sum is positive.
  explicit AliasSampler(std::span<const double> weights);

  /// Returns a row. `bits` are 64 random bits.
  std::int32_t draw(std::uint64_t bits) const noexcept {
    const std::uint64_t slot = (bits >> 32) * slots_.size() >> 32;
    const Slot& s = slots_[slot];
    return static_cast<std::uint32_t>(bits) < s.threshold ? static_cast<std::int32_t>(slot) : s.alias;
  }

 private:
  struct Slot {
    std::uint32_t threshold = 0;  // 2^32 times the probability of the slot's own row
    std::int32_t alias = 0;
  };
  std::vector<Slot> slots_;
};

/// The distribution of negatives: counts to the power of 0.75.
AliasSampler negative_sampler(std::span<const std::int64_t> counts);

}  // namespace capstan::train::word2vec
