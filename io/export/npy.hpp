// npy.hpp -- the header of a .npy file (numpy/lib/format.py), versions 1 to 3.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "capstan/dtype.hpp"

namespace capstan::io {

/// Returns the dtype to export: float32 for bfloat16, which numpy lacks, otherwise `dtype`.
DType numpy_dtype(DType dtype) noexcept;

/// Returns the header of a little-endian array in row-major order; its length is a multiple of 64 bytes.
/// REQUIRES: numpy has the dtype.
std::string npy_head(DType dtype, const std::vector<std::uint64_t>& shape);

struct NpyHead {
  DType dtype = DType::float32;
  std::vector<std::uint64_t> shape = {};  // empty for a scalar
  std::uint64_t offset = 0;               // of the first element, in bytes
};

/// Throws Error: not_found, data_loss (not a .npy file, or a size that contradicts the header), and
/// invalid_argument (a dtype that variables cannot have, or column-major order).
NpyHead read_npy_head(const std::filesystem::path& file);

}  // namespace capstan::io
