// verify.hpp -- verifies files of a checkpoint. Does not use the HDF5 library, which damaged metadata can
// crash.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "io/file.hpp"
#include "io/hdf5/checkpoint_types.hpp"
#include "io/progress_callback.hpp"

namespace capstan::io {

/// Returns the XXH3-64 of the bytes of `file` outside of `part.datasets`, in file order.
std::string metadata_checksum(const std::filesystem::path& file, const PartReport& part);

/// Throws Error(data_loss) unless `file` exists, has this size and starts with HDF5's signature.
void check_hdf5_file(const std::filesystem::path& file, std::uint64_t bytes);

/// Throws Error(data_loss) if `check_hdf5_file` does, or if the checksum of the bytes outside the datasets
/// differs.
void check_part(const std::filesystem::path& file, const PartReport& part);

/// Verifies one dataset: throws Error(data_loss) that names it unless the bytes have the checksum `xxh3`.
/// `from` is the open `file`; `path` is the dataset's path in it. Reads 1 MiB at a time.
void check_dataset(const FileDescriptor& from, const std::filesystem::path& file, std::uint64_t offset,
                   std::uint64_t bytes, std::string_view xxh3, std::string_view path,
                   const ProgressCallback& progress = {});

/// Throws Error(data_loss) if the checksum of a dataset differs.
void check_part_data(const std::filesystem::path& file, const PartReport& part,
                     const ProgressCallback& progress = {});

/// Throws Error(data_loss) that names dataset `path` unless `found` equals `written`.
void require_same_checksum(const std::filesystem::path& file, std::string_view path, std::string_view found,
                           std::string_view written);

/// Throws Error(data_loss) if `check_hdf5_file` does, or if the checksum of the file differs.
void check_master(const std::filesystem::path& file, std::uint64_t bytes, const std::string& xxh3);

/// Returns true if the file is readable and starts with HDF5's signature.
bool looks_like_hdf5(const std::filesystem::path& file) noexcept;

/// Returns the number of bytes that the part stores of the dataset.
std::uint64_t data_bytes(const DatasetReport& dataset) noexcept;

}  // namespace capstan::io
