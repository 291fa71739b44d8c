// ids.hpp -- row ids to look up: uniform, or Zipf-distributed like the popularity of words and users.
#pragma once

#include <cstdint>
#include <numeric>
#include <span>
#include <string>

namespace capstan::perf {

/// SplitMix64 (Steele, Lea, Flood 2014): small, fast, and suitable for any seed.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  /// Returns a uniform number in [0, 1).
  double real() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  /// Returns a uniform number in [0, limit).
  std::uint64_t below(std::uint64_t limit) {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(next()) * limit) >> 64);
  }

 private:
  std::uint64_t state_;
};

/// Draws popularity ranks 1 .. n with probability proportional to rank^-exponent, by rejection-inversion:
/// W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates from monotone discrete
/// distributions", ACM TOMACS 6(3), 1996. Constant time per draw, no table.
class Zipf {
 public:
  Zipf(std::uint64_t n, double exponent);
  std::uint64_t draw(Random& random) const;

 private:
  double integral(double x) const;          // integral of the density, up to a constant
  double inverse_integral(double y) const;  // inverse function of integral()
  double density(double x) const;

  double exponent_;
  double n_;
  double low_;   // integral at n + 1/2
  double high_;  // integral at 3/2, less the density at 1
  double near_;  // a draw this close to its integer is accepted at once
};

/// Maps popularity ranks to rows by multiplication with a number coprime to the number of rows. Every row is
/// hit once, and popular rows are not adjacent.
class Scramble {
 public:
  explicit Scramble(std::uint64_t rows);
  std::uint64_t operator()(std::uint64_t rank) const {
    return static_cast<std::uint64_t>(static_cast<unsigned __int128>(rank) * factor_ % rows_);
  }

 private:
  std::uint64_t rows_;
  std::uint64_t factor_;
};

/// Draws ids of rows [0, rows). REQUIRES: `kind` is "uniform" or "zipf".
class Ids {
 public:
  Ids(const std::string& kind, std::uint64_t rows, double zipf_exponent, std::uint64_t seed);
  void draw(std::span<std::int64_t> out);

 private:
  bool uniform_;
  std::uint64_t rows_;
  Zipf zipf_;
  Scramble scramble_;
  Random random_;
};

}  // namespace capstan::perf
