// copy_part.cpp -- one pass: read, add to the checksum of what the bytes belong to, write.
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

constexpr std::uint64_t kCopiedAtOnce = std::uint64_t{1} << 20;

/// Datasets in the order in which they lie in the file.
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
  Copy(const FileDescriptor& from, const std::filesystem::path& named, const std::filesystem::path& to,
       const BytesDone& before_each)
      : from_(from), named_(named), to_(to), before_each_(before_each) {}

  /// Everything up to `end`.
  void up_to(std::uint64_t end, Checksum& sum) {
    while (at_ < end) {
      const auto bytes = static_cast<std::size_t>(std::min(kCopiedAtOnce, end - at_));
      if (before_each_) before_each_(bytes);
      read_at(from_, named_, at_, piece_.data(), bytes);
      sum.add(piece_.data(), bytes);
      to_.write_at(at_, {piece_.data(), bytes});
      at_ += bytes;
    }
  }
  void sync() { to_.sync(); }

 private:
  const FileDescriptor& from_;
  const std::filesystem::path& named_;
  FileWriter to_;
  const BytesDone& before_each_;
  std::vector<std::byte> piece_ = std::vector<std::byte>(kCopiedAtOnce);
  std::uint64_t at_ = 0;
};

}  // namespace

void copy_part(const FileDescriptor& from, const std::filesystem::path& named,
               const std::filesystem::path& to, const PartReport& part, const BytesDone& before_each) {
  if (const std::uint64_t bytes = file_bytes(from, named); bytes != part.bytes) {
    throw Error(Code::data_loss,
                fmt::format("{} has {} bytes; {} were written", named.string(), bytes, part.bytes));
  }
  remove_path(to);
  reserve(to, part.bytes);
  Copy copy(from, named, to, before_each);
  Checksum metadata;
  for (const DatasetReport* dataset : by_offset(part)) {
    copy.up_to(dataset->offset, metadata);
    Checksum rows;
    copy.up_to(dataset->offset + data_bytes(*dataset), rows);
    check_sum(named, dataset_path(dataset->variable, dataset->which), rows.hex(), dataset->xxh3);
  }
  copy.up_to(part.bytes, metadata);
  check_sum(named, "its HDF5 metadata", metadata.hex(), part.metadata_xxh3);
  copy.sync();
  sync_path(to.has_parent_path() ? to.parent_path() : ".");
}

}  // namespace capstan::io
