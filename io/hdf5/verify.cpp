// verify.cpp -- sizes, signature and checksums of a part.
#include "io/hdf5/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>
#include <vector>

#include "capstan/error.hpp"
#include "io/checksum.hpp"
#include "io/file.hpp"
#include "io/hdf5/layout.hpp"

namespace capstan::io {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1}
                                     << 20;  // stays in the L2 cache between pread and checksum

constexpr std::string_view kSignature("\x89HDF\r\n\x1a\n", 8);

Error not_as_written(const std::filesystem::path& file, std::string_view fault) {
  return Error(Code::data_loss, fmt::format("{} {}", file.string(), fault));
}

void add_range(Checksum& sum, const FileDescriptor& from, const std::filesystem::path& file,
               std::uint64_t begin, std::uint64_t end, std::vector<char>& buffer,
               const ProgressCallback& progress = {}) {
  while (begin < end) {
    const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(end - begin, buffer.size()));
    read_at(from, file, begin, buffer.data(), bytes);
    sum.add(buffer.data(), bytes);
    begin += bytes;
    if (progress) progress(bytes);
  }
}

}  // namespace

std::uint64_t data_bytes(const DatasetReport& dataset) noexcept {
  return dataset.stored() * row_bytes(dataset.shape, dataset.dtype);
}

bool looks_like_hdf5(const std::filesystem::path& file) noexcept {
  try {
    std::array<char, kSignature.size()> start{};
    read_at(open_to_read(file), file, 0, start.data(), start.size());
    return std::string_view(start.data(), start.size()) == kSignature;
  } catch (const std::exception&) {
    return false;
  }
}

std::string metadata_checksum(const std::filesystem::path& file, const PartReport& part) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> data;  // begin, end
  for (const DatasetReport& dataset : part.datasets) {
    data.emplace_back(dataset.offset, dataset.offset + data_bytes(dataset));
  }
  data.emplace_back(part.bytes, part.bytes);
  std::sort(data.begin(), data.end());

  const FileDescriptor from = open_to_read(file);
  std::vector<char> buffer(kBufferBytes);
  Checksum sum;
  std::uint64_t at = 0;
  for (const auto& [begin, end] : data) {
    add_range(sum, from, file, at, begin, buffer);
    at = end;
  }
  return sum.hex();
}

void check_hdf5_file(const std::filesystem::path& file, std::uint64_t bytes) {
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (status.type() == std::filesystem::file_type::not_found) throw not_as_written(file, "is missing");
  if (error) throw file_failed("read", file, error.value());
  if (!std::filesystem::is_regular_file(status)) throw not_as_written(file, "is not a regular file");
  const auto found = std::filesystem::file_size(file, error);
  if (error) throw file_failed("read", file, error.value());
  if (found != bytes) throw not_as_written(file, fmt::format("has {} bytes, expected {}", found, bytes));
  if (!looks_like_hdf5(file)) throw not_as_written(file, "is not an HDF5 file");
}

void check_part(const std::filesystem::path& file, const PartReport& part) {
  check_hdf5_file(file, part.bytes);
  if (metadata_checksum(file, part) != part.metadata_xxh3) {
    throw not_as_written(file, "is damaged or was replaced: the checksum of its HDF5 metadata differs");
  }
}

void check_dataset(const FileDescriptor& from, const std::filesystem::path& file, std::uint64_t offset,
                   std::uint64_t bytes, std::string_view xxh3, std::string_view path,
                   const ProgressCallback& progress) {
  std::vector<char> buffer(kBufferBytes);
  Checksum sum;
  add_range(sum, from, file, offset, offset + bytes, buffer, progress);
  require_same_checksum(file, path, sum.hex(), xxh3);
}

void check_part_data(const std::filesystem::path& file, const PartReport& part,
                     const ProgressCallback& progress) {
  const FileDescriptor from = open_to_read(file);
  for (const DatasetReport& dataset : part.datasets) {
    check_dataset(from, file, dataset.offset, data_bytes(dataset), dataset.xxh3,
                  dataset_path(dataset.variable, dataset.component), progress);
  }
}

void require_same_checksum(const std::filesystem::path& file, std::string_view path, std::string_view found,
                           std::string_view written) {
  if (found == written) return;
  throw not_as_written(
      file, fmt::format("is damaged: the checksum of {} is {}, expected {}", path, found, written));
}

void check_master(const std::filesystem::path& file, std::uint64_t bytes, const std::string& xxh3) {
  check_hdf5_file(file, bytes);
  if (checksum_of(read_whole_file(file)) != xxh3)
    throw not_as_written(file, "is damaged: its checksum differs");
}

}  // namespace capstan::io
