// norms.cpp -- one loop per dtype, accumulating in double.
#include "launch/checkpoint/norms.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/with_type.hpp"

namespace capstan::launch::checkpoint {
namespace {

template <class T>
double element(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return static_cast<double>(static_cast<Arithmetic<T>>(value));
}

template <class T>
void add_elements(Norms& norms, std::string_view bytes) {
  double low = norms.finite > 0 ? norms.minimum : std::numeric_limits<double>::infinity();
  double high = norms.finite > 0 ? norms.maximum : -std::numeric_limits<double>::infinity();
  double squares = 0;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(T)) {
    const double value = element<T>(bytes.data() + at);
    if (!std::isfinite(value)) {
      ++(std::isnan(value) ? norms.nan : norms.infinite);
      continue;
    }
    ++norms.finite;
    squares += value * value;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  norms.sum_of_squares += squares;
  norms.minimum = low;
  norms.maximum = high;
}

}  // namespace

double Norms::l2() const { return std::sqrt(sum_of_squares); }

void add(Norms& norms, DType dtype, std::string_view bytes) {
  with_type(dtype, [&]<class T>(std::type_identity<T>) { add_elements<T>(norms, bytes); });
}

}  // namespace capstan::launch::checkpoint
