// gemm.hpp -- products of float matrices in a GPU's memory.
#pragma once

#include <cstdint>

#include "gpu/gpu.hpp"

namespace capstan::gpu {

enum class Transposed : bool { no, yes };

/// What two numbers add to a sum: their product, or the square of their difference.
enum class GemmTerm : std::uint8_t { product, squared_difference };

/// out[i, j] = sum over k of term(a[i, k], b[k, j]), all in float. Rows of a matrix lie `stride` floats
/// apart. The order of the sums depends on the numbers of rows, columns and parts alone.
struct Gemm {
  std::uint32_t rows = 0;     // of a and out
  std::uint32_t columns = 0;  // of b and out
  std::uint32_t inner = 0;    // columns of a, rows of b; 0 makes zeros
  const float* a = nullptr;
  std::uint32_t a_stride = 0;
  Transposed a_transposed = Transposed::no;  // yes: a[i, k] lies at k * stride + i
  const float* b = nullptr;
  std::uint32_t b_stride = 0;
  Transposed b_transposed = Transposed::no;
  float* out = nullptr;
  std::uint32_t out_stride = 0;
  /// `out` is so many matrices whose sum is the result: each of the k that belong to a part. For results too
  /// small to keep a GPU busy; whoever reads them adds them up. REQUIRES: `part_apart` floats from the first
  /// of one to the first of the next.
  std::uint32_t parts = 1;
  std::uint64_t part_apart = 0;
  bool adds = false;  // to what is in `out`
};

/// So many parts keep a GPU busy. By the sizes alone.
std::uint32_t gemm_parts(std::uint32_t rows, std::uint32_t columns, std::uint32_t inner) noexcept;

/// Returns when the work has been given to the stream. Throws Error(invalid_argument) for matrices of more
/// than 2^31 tiles.
void multiply(const Stream& stream, const Gemm& gemm, GemmTerm term = GemmTerm::product);

}  // namespace capstan::gpu
