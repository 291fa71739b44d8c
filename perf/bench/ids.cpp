// ids.cpp -- rejection-inversion sampling, and the mapping of popularity ranks to rows.
#include "perf/bench/ids.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace capstan::perf {
namespace {

/// log1p(x) / x and expm1(x) / x, continued to 0 by their limits.
double log1p_ratio(double x) { return std::abs(x) > 1e-8 ? std::log1p(x) / x : 1 - x / 2; }
double expm1_ratio(double x) { return std::abs(x) > 1e-8 ? std::expm1(x) / x : 1 + x / 2; }

}  // namespace

Zipf::Zipf(std::uint64_t n, double exponent)
    : exponent_(exponent),
      n_(static_cast<double>(n)),
      low_(integral(n_ + 0.5)),
      high_(integral(1.5) - 1),
      near_(2 - inverse_integral(integral(2.5) - density(2))) {}

// These are formulated such that an exponent of 1, where x^(1-s)/(1-s) is undefined, is no special case.
double Zipf::integral(double x) const {
  const double log_x = std::log(x);
  return expm1_ratio((1 - exponent_) * log_x) * log_x;
}
double Zipf::inverse_integral(double y) const {
  const double t = std::max(y * (1 - exponent_), -1.0);  // rounding may leave the domain
  return std::exp(log1p_ratio(t) * y);
}
double Zipf::density(double x) const { return std::exp(-exponent_ * std::log(x)); }

std::uint64_t Zipf::draw(Random& random) const {
  for (;;) {
    const double u = low_ + random.real() * (high_ - low_);
    const double x = inverse_integral(u);
    const double k = std::clamp(std::floor(x + 0.5), 1.0, n_);
    if (k - x <= near_ || u >= integral(k + 0.5) - density(k)) return static_cast<std::uint64_t>(k);
  }
}

Scramble::Scramble(std::uint64_t rows) : rows_(rows) {
  if (rows == 0) throw std::invalid_argument("cannot draw ids: the table has 0 rows, expected at least 1");
  // A factor near the golden section of the table maps consecutive ranks far apart.
  factor_ = static_cast<std::uint64_t>(static_cast<double>(rows) * 0.6180339887498949) | 1;
  while (std::gcd(factor_, rows_) != 1) factor_ += 2;
}

Ids::Ids(const std::string& kind, std::uint64_t rows, double zipf_exponent, std::uint64_t seed)
    : uniform_(kind == "uniform"), rows_(rows), zipf_(rows, zipf_exponent), scramble_(rows), random_(seed) {}

void Ids::draw(std::span<std::int64_t> out) {
  for (std::int64_t& id : out) {
    id = static_cast<std::int64_t>(uniform_ ? random_.below(rows_) : scramble_(zipf_.draw(random_) - 1));
  }
}

}  // namespace capstan::perf
