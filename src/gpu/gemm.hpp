// gemm.hpp -- products of float matrices in GPU memory.
#pragma once

#include <cstdint>

#include "gpu/gpu.hpp"

namespace capstan::gpu {

enum class Transposed : bool { no, yes };

/// Contribution of two numbers to a sum: their product, or the square of their difference.
enum class GemmTerm : std::uint8_t { product, squared_difference };

/// out[i, j] = sum over k of term(a[i, k], b[k, j]), computed in float. Rows of a matrix are `stride` floats
/// apart. The order of summation depends only on the numbers of rows, columns and parts.
struct Gemm {
  std::uint32_t rows = 0;     // of a and out
  std::uint32_t columns = 0;  // of b and out
  std::uint32_t inner = 0;    // columns of a, rows of b; 0 yields zeros
  const float* a = nullptr;
  std::uint32_t a_stride = 0;
  Transposed a_transposed = Transposed::no;  // yes: a[i, k] is at k * stride + i
  const float* b = nullptr;
  std::uint32_t b_stride = 0;
  Transposed b_transposed = Transposed::no;
  float* out = nullptr;
  std::uint32_t out_stride = 0;
  /// Number of partial results. `out` receives this many matrices, each the sum over a range of k; the caller
  /// adds them up. Several parts keep a GPU busy if the result is small.
  std::uint32_t parts = 1;
  /// Distance between the partial results, in floats.
  std::uint64_t part_apart = 0;
  bool adds = false;  // adds to the previous content of `out`
};

/// Returns the number of parts that keeps a GPU busy. It depends only on the sizes.
std::uint32_t gemm_parts(std::uint32_t rows, std::uint32_t columns, std::uint32_t inner) noexcept;

/// Enqueues the product on the stream. Throws Error(invalid_argument) for a product of 2^31 tiles or more.
void multiply(const Stream& stream, const Gemm& gemm, GemmTerm term = GemmTerm::product);

}  // namespace capstan::gpu
