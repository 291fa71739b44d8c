// part_writer.hpp -- a ps writes its rows into its own HDF5 file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "io/hdf5/checkpoint_types.hpp"

namespace capstan::io {

/// "part-00000-of-00002.h5" for the first of two ps: where one process writes all parts.
std::string part_file_name(int ps, int ps_count);
/// "part-00000-of-00002-9f86d081884c7d65.h5". A ps takes another random number for each attempt to save, so
/// that no attempt writes to a file of another: one that was fenced may still be writing.
std::string part_file_name(int ps, int ps_count, std::uint64_t attempt);

/// Writes, checksums and fsyncs `file` (and its folder), replacing one of the same name. An empty `arrays` is
/// a ps without rows and gives a valid part. Any thread; calls into HDF5 are serialised within the process,
/// the writing of rows is not.
/// Throws Error: invalid_argument (a name that no file can hold, a shape that does not fit),
/// resource_exhausted (disk full, quota), permission_denied, internal; the message names the file. What is
/// left of the file then is not part of any checkpoint.
PartReport write_part(const std::filesystem::path& file, std::span<const PartArray> arrays);

}  // namespace capstan::io
