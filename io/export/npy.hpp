// npy.hpp -- the head of a .npy file (numpy/lib/format.py), versions 1 to 3.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "capstan/dtype.hpp"

namespace capstan::io {

/// The dtype that numpy gets for ours: float32 for bfloat16, which it has not.
DType numpy_dtype(DType dtype) noexcept;

/// Of a little-endian array in row-major order; a multiple of 64 bytes long. REQUIRES: numpy has the dtype.
std::string npy_head(DType dtype, const std::vector<std::uint64_t>& shape);

struct NpyHead {
  DType dtype = DType::float32;
  std::vector<std::uint64_t> shape = {};  // none for a scalar
  std::uint64_t offset = 0;               // of the first element
};

/// Throws Error: not_found, data_loss (no .npy file, or shorter than its head says), invalid_argument (a
/// dtype that no variable has, columns first).
NpyHead read_npy_head(const std::filesystem::path& file);

}  // namespace capstan::io
