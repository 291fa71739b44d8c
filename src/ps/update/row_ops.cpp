// row_ops.cpp -- instantiates one loop per operation and type.
#include "ps/update/row_ops.hpp"

#include <algorithm>
#include <cstring>

namespace capstan::ps {
namespace {

/// Prefetch distance in rows; only the first cache line of a row is prefetched.
constexpr std::uint64_t kRowsAhead = 8;

/// Applies `op` to each element. `A`: operand type of `op`.
template <class A, class T, class Op>
void for_rows(const Update<T>& u, Op op) {
  for (std::uint64_t i = 0; i < u.count; ++i) {
    if (u.rows != nullptr) {
      __builtin_prefetch(u.values + u.rows[std::min(i + kRowsAhead, u.count - 1)] * u.width, 1);
    }
    T* __restrict w = u.values + (u.rows != nullptr ? u.rows[i] : u.first_row + i) * u.width;
    const T* __restrict x = u.gradient_of(i);
    for (std::uint64_t j = 0; j < u.width; ++j) {
      w[j] = static_cast<T>(op(static_cast<A>(w[j]), static_cast<A>(x[j])));
    }
  }
}

template <class T>
void set_rows(const Update<T>& u) {
  for (std::uint64_t i = 0; i < u.count; ++i) {
    T* w = u.values + (u.rows != nullptr ? u.rows[i] : u.first_row + i) * u.width;
    std::memcpy(w, u.gradient_of(i), u.width * sizeof(T));
  }
}

/// Divides; integers round towards zero. Division of a signed integer by -1 wraps around instead of trapping
/// on the smallest one.
template <class A>
A quotient(A w, A x) {
  if constexpr (std::is_integral_v<A> && std::is_signed_v<A>) {
    if (x == static_cast<A>(-1)) return static_cast<A>(Wrapping<A>{0} - static_cast<Wrapping<A>>(w));
  }
  return w / x;
}

}  // namespace

template <class T>
void apply(protocol::RowOp op, const Update<T>& u) {
  using A = Arithmetic<T>;
  using W = Wrapping<T>;
  switch (op) {
    case protocol::RowOp::gradient:
    case protocol::RowOp::insert:
    case protocol::RowOp::erase:
      return;
    case protocol::RowOp::set:
      return set_rows(u);
    case protocol::RowOp::add:
      return for_rows<W>(u, [](W w, W x) { return w + x; });
    case protocol::RowOp::sub:
      return for_rows<W>(u, [](W w, W x) { return w - x; });
    case protocol::RowOp::mul:
      return for_rows<W>(u, [](W w, W x) { return w * x; });
    case protocol::RowOp::div:
      return for_rows<A>(u, [](A w, A x) { return quotient(w, x); });
    case protocol::RowOp::min:
      return for_rows<A>(u, [](A w, A x) { return std::min(w, x); });
    case protocol::RowOp::max:
      return for_rows<A>(u, [](A w, A x) { return std::max(w, x); });
  }
}

template void apply(protocol::RowOp, const Update<float>&);
template void apply(protocol::RowOp, const Update<double>&);
template void apply(protocol::RowOp, const Update<float16>&);
template void apply(protocol::RowOp, const Update<bfloat16>&);
template void apply(protocol::RowOp, const Update<std::int64_t>&);
template void apply(protocol::RowOp, const Update<std::int32_t>&);
template void apply(protocol::RowOp, const Update<std::uint8_t>&);

}  // namespace capstan::ps
