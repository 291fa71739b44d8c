// verify.hpp -- verifies files of a checkpoint without HDF5, which damaged metadata can crash.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "io/bytes_done.hpp"
#include "io/file.hpp"
#include "io/hdf5/checkpoint_types.hpp"

namespace capstan::io {

/// Returns the XXH3-64 of the bytes of `file` outside of `part.datasets`, in file order.
std::string metadata_checksum(const std::filesystem::path& file, const PartReport& part);

/// Throws Error(data_loss) unless `file` exists, has this size and starts with HDF5's signature.
void check_hdf5_file(const std::filesystem::path& file, std::uint64_t bytes);

/// Throws Error(data_loss) if `check_hdf5_file` does, or if the checksum of the bytes outside the datasets
/// differs.
void check_part(const std::filesystem::path& file, const PartReport& part);

/// Throws Error(data_loss) that names dataset `path` if the checksum of its bytes differs. Reads 1 MiB at a
/// time.
void check_dataset(const FileDescriptor& from, const std::filesystem::path& file, std::uint64_t offset,
                   std::uint64_t bytes, std::string_view xxh3, std::string_view path,
                   const BytesDone& done = {});

/// Throws Error(data_loss) if the checksum of a dataset differs.
void check_part_data(const std::filesystem::path& file, const PartReport& part, const BytesDone& done = {});

/// Throws Error(data_loss) that names dataset `path` unless `found` equals `written`.
void check_sum(const std::filesystem::path& file, std::string_view path, std::string_view found,
               std::string_view written);

/// Throws Error(data_loss) if `check_hdf5_file` does, or if the checksum of the file differs.
void check_master(const std::filesystem::path& file, std::uint64_t bytes, const std::string& xxh3);

/// Returns true if the file is readable and starts with HDF5's signature.
bool looks_like_hdf5(const std::filesystem::path& file) noexcept;

/// Returns the size of the dataset in its part.
std::uint64_t data_bytes(const DatasetReport& dataset) noexcept;

}  // namespace capstan::io
