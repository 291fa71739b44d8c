// verify.hpp -- is a file of a checkpoint what was written? Reads bytes, never asks HDF5: damaged metadata
// can crash it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "io/bytes_done.hpp"
#include "io/file.hpp"
#include "io/hdf5/checkpoint_types.hpp"

namespace capstan::io {

/// XXH3-64 of the bytes of `file` that lie in none of `part.datasets`, in file order.
std::string metadata_checksum(const std::filesystem::path& file, const PartReport& part);

/// There, of this size, and starting as HDF5 does. Throws Error data_loss.
void check_hdf5_file(const std::filesystem::path& file, std::uint64_t bytes);

/// `check_hdf5_file`, and undamaged outside the datasets. Throws Error data_loss.
void check_part(const std::filesystem::path& file, const PartReport& part);

/// The bytes of one dataset are those that were written. `path` is for the message. Reads 1 MiB at a time.
/// Throws Error data_loss.
void check_dataset(const FileDescriptor& from, const std::filesystem::path& file, std::uint64_t offset,
                   std::uint64_t bytes, std::string_view xxh3, std::string_view path,
                   const BytesDone& done = {});

/// Undamaged inside every dataset. Throws Error data_loss.
void check_part_data(const std::filesystem::path& file, const PartReport& part, const BytesDone& done = {});

/// The bytes of the dataset `path` have the checksum that was written. Throws Error data_loss.
void check_sum(const std::filesystem::path& file, std::string_view path, std::string_view found,
               std::string_view written);

/// There, of this size, starting as HDF5 does, and with this checksum. Throws Error data_loss.
void check_master(const std::filesystem::path& file, std::uint64_t bytes, const std::string& xxh3);

/// True for a file that starts with HDF5's signature; false for any other and for one that cannot be read.
bool looks_like_hdf5(const std::filesystem::path& file) noexcept;

/// Bytes of the dataset in its part.
std::uint64_t data_bytes(const DatasetReport& dataset) noexcept;

}  // namespace capstan::io
