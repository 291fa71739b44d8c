// part_writer.hpp -- writes the rows of one ps to its own HDF5 file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "io/hdf5/checkpoint_types.hpp"

namespace capstan::io {

/// Returns "part-00000-of-00002.h5" for the first of two ps. Used if one process writes all parts.
std::string part_file_name(int ps, int ps_count);
/// Returns "part-00000-of-00002-9f86d081884c7d65.h5". `attempt` is a new random number for each attempt to
/// save, because a fenced ps may still be writing to the file of an earlier attempt.
std::string part_file_name(int ps, int ps_count, std::uint64_t attempt);

/// Writes and checksums `file`, and fsyncs it and its directory; replaces a file of the same name. If
/// `arrays` is empty, as for a ps without rows, the part is still valid. May be called on any thread; calls
/// of HDF5 are serialized within the process, writes of rows are not. Throws Error: invalid_argument (invalid
/// name or shape), resource_exhausted (disk full, quota), permission_denied, internal. The message names the
/// file or the array. A partial file may remain, which belongs to no checkpoint.
PartReport write_part(const std::filesystem::path& file, std::span<const PartArray> arrays);

}  // namespace capstan::io
