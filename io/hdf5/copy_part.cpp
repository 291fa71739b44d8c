// copy_part.cpp -- one pass: read, add to the checksum of the dataset or the metadata, write.
#include "io/hdf5/copy_part.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "capstan/error.hpp"
#include "io/checksum.hpp"
#include "io/hdf5/layout.hpp"
#include "io/hdf5/verify.hpp"

namespace capstan::io {
namespace {

constexpr std::uint64_t kChunkBytes = std::uint64_t{1} << 20;

/// Non-empty datasets in file order.
std::vector<const DatasetReport*> by_offset(const PartReport& part) {
  std::vector<const DatasetReport*> datasets;
  for (const DatasetReport& dataset : part.datasets) {
    if (data_bytes(dataset) > 0) datasets.push_back(&dataset);
  }
  std::sort(datasets.begin(), datasets.end(),
            [](const DatasetReport* a, const DatasetReport* b) { return a->offset < b->offset; });
  return datasets;
}

class Copy {
 public:
  Copy(const FileDescriptor& from, const std::filesystem::path& from_path, const std::filesystem::path& to,
       const ProgressCallback& before_chunk)
      : from_(from), from_path_(from_path), to_(to), before_chunk_(before_chunk) {}

  /// Copies everything up to offset `end`.
  void up_to(std::uint64_t end, Checksum& sum) {
    while (at_ < end) {
      const auto bytes = static_cast<std::size_t>(std::min(kChunkBytes, end - at_));
      if (before_chunk_) before_chunk_(bytes);
      read_at(from_, from_path_, at_, piece_.data(), bytes);
      sum.add(piece_.data(), bytes);
      to_.write_at(at_, {piece_.data(), bytes});
      at_ += bytes;
    }
  }
  void sync() { to_.sync(); }

 private:
  const FileDescriptor& from_;
  const std::filesystem::path& from_path_;
  FileWriter to_;
  const ProgressCallback& before_chunk_;
  std::vector<std::byte> piece_ = std::vector<std::byte>(kChunkBytes);
  std::uint64_t at_ = 0;
};

}  // namespace

void copy_part(const FileDescriptor& from, const std::filesystem::path& from_path,
               const std::filesystem::path& to, const PartReport& part,
               const ProgressCallback& before_chunk) {
  if (const std::uint64_t bytes = file_bytes(from, from_path); bytes != part.bytes) {
    throw Error(Code::data_loss,
                fmt::format("{} has {} bytes, expected {}", from_path.string(), bytes, part.bytes));
  }
  remove_path(to);
  reserve(to, part.bytes);
  Copy copy(from, from_path, to, before_chunk);
  Checksum metadata;
  for (const DatasetReport* dataset : by_offset(part)) {
    copy.up_to(dataset->offset, metadata);
    Checksum rows;
    copy.up_to(dataset->offset + data_bytes(*dataset), rows);
    require_same_checksum(from_path, dataset_path(dataset->variable, dataset->component), rows.hex(),
                          dataset->xxh3);
  }
  copy.up_to(part.bytes, metadata);
  require_same_checksum(from_path, "its HDF5 metadata", metadata.hex(), part.metadata_xxh3);
  copy.sync();
  sync_path(to.has_parent_path() ? to.parent_path() : ".");
}

}  // namespace capstan::io
