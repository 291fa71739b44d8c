// blas.hpp -- the matrix product that training and ranking use (GEMM), on row-major floats.
#pragma once

#include <cblas.h>

#include <cstdint>

namespace capstan::train {

enum class Transposed : bool { no = false, yes = true };

/// c (rows x columns) = alpha * a * b + beta * c, where a has `inner` columns after the optional
/// transposition. A stride is the length of a stored row. Runs on the calling thread only: each core belongs
/// to a worker.
inline void multiply(Transposed a_transposed, Transposed b_transposed, std::int64_t rows,
                     std::int64_t columns, std::int64_t inner, float alpha, const float* a,
                     std::int64_t a_stride, const float* b, std::int64_t b_stride, float beta, float* c,
                     std::int64_t c_stride) {
  const auto flag = [](Transposed t) { return t == Transposed::yes ? CblasTrans : CblasNoTrans; };
  const auto to_int = [](std::int64_t n) { return static_cast<blasint>(n); };
  cblas_sgemm(CblasRowMajor, flag(a_transposed), flag(b_transposed), to_int(rows), to_int(columns),
              to_int(inner), alpha, a, to_int(a_stride), b, to_int(b_stride), beta, c, to_int(c_stride));
}

/// Limits OpenBLAS to the calling thread; the default is a thread per core. Process-wide; call it before the
/// first product.
inline void use_one_blas_thread() {
  static const bool done = (openblas_set_num_threads(1), true);
  static_cast<void>(done);
}

}  // namespace capstan::train
