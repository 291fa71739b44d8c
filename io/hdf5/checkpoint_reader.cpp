// checkpoint_reader.cpp -- rows through the master's virtual datasets, each part's first row compared with
// the part itself.
#include "io/hdf5/checkpoint_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <system_error>
#include <utility>

#include "capstan/error.hpp"
#include "io/checksum.hpp"
#include "io/file.hpp"
#include "io/hdf5/h5.hpp"
#include "io/hdf5/layout.hpp"
#include "io/hdf5/manifest.hpp"
#include "io/hdf5/verify.hpp"

namespace capstan::io {
namespace {

namespace fs = std::filesystem;

void check_is_folder(const fs::path& path) {
  std::error_code error;
  const auto status = fs::status(path, error);
  if (status.type() == fs::file_type::none) throw file_failed("read", path, error.value());
  if (!fs::exists(status)) throw Error(Code::not_found, fmt::format("no checkpoint at {}", path.string()));
  if (fs::is_directory(status)) return;
  const std::string what = !looks_like_hdf5(path) ? "a file, and not even HDF5"
                           : fs::exists(path.parent_path() / kManifestFile)
                               ? "one file of a checkpoint"
                               : "an HDF5 file that is no checkpoint";
  throw Error(
      Code::data_loss,
      fmt::format(
          "{} is {}; a checkpoint is a folder with a {} in it: give that folder, or the one that holds all",
          path.string(), what, kManifestFile));
}

void check_master(const fs::path& file, const Manifest& manifest) {
  check_hdf5_file(file, manifest.master_bytes);
  if (checksum_of(read_whole_file(file)) != manifest.master_xxh3) {
    throw Error(Code::data_loss, file.string() + " is damaged: its checksum differs");
  }
}

/// Rows of a request that one part holds.
struct Segment {
  const PartReport* part;
  const DatasetReport* dataset;
  std::uint64_t first_row;
  std::uint64_t rows;
};

}  // namespace

struct CheckpointReader::Impl {
  fs::path folder;
  Manifest manifest;
  h5::File master;

  explicit Impl(const fs::path& from) : folder(from) {
    check_is_folder(folder);
    manifest = read_manifest(folder);
    check_master(folder / kMasterFile, manifest);
    for (const PartReport& part : manifest.parts) check_part(folder / part.file, part);
    const h5::Session session;
    master = h5::open_file(folder / kMasterFile);
  }
  ~Impl() {
    const h5::Session session;
    master.reset();
  }

  std::vector<Segment> segments(std::string_view variable, std::string_view which, std::uint64_t first_row,
                                std::uint64_t rows) const {
    std::vector<Segment> found;
    for (const PartReport& part : manifest.parts) {
      for (const DatasetReport& dataset : part.datasets) {
        if (dataset.variable != variable || dataset.which != which) continue;
        const auto begin = std::max(first_row, dataset.first_row);
        const auto end = std::min(first_row + rows, dataset.first_row + dataset.rows);
        if (begin < end) found.push_back({&part, &dataset, begin, end - begin});
      }
    }
    return found;
  }

  void read_virtual(const DatasetReport& array, std::uint64_t first_row, std::uint64_t rows,
                    void* out) const {
    const auto file = folder / kMasterFile;
    const std::string path = dataset_path(array.variable, array.which);
    const h5::Session session;
    const h5::Dataset dataset(h5::check(H5Dopen2(master.get(), path.c_str(), H5P_DEFAULT), "H5Dopen2", file));
    const h5::Space whole = h5::create_space(array.shape);
    h5::select_rows(whole, array.shape, first_row, rows);
    auto shape = array.shape;
    shape[0] = rows;
    const h5::Space in_memory = h5::create_space(shape);
    h5::check(
        H5Dread(dataset.get(), h5::memory_type(array.dtype), in_memory.get(), whole.get(), H5P_DEFAULT, out),
        "H5Dread", file);
  }

  /// HDF5 shows fill values, without an error, for a part that it cannot open (deleted meanwhile, too many
  /// open files), and the rows of another file that HDF5_VDS_PREFIX leads it to. So the first row of each
  /// part is compared with the part itself, and a segment that begins with the fill value is read from the
  /// part altogether.
  void check_segment(const Segment& segment, char* out) const {
    const auto file = folder / segment.part->file;
    const DatasetReport& dataset = *segment.dataset;
    const std::uint64_t bytes = row_bytes(dataset.shape, dataset.dtype);
    const std::uint64_t offset = dataset.offset + (segment.first_row - dataset.first_row) * bytes;
    const std::uint64_t missing = missing_value_bits(dataset.dtype);
    const bool may_be_missing = std::memcmp(out, &missing, size_of(dataset.dtype)) == 0;
    try {
      const FileDescriptor from = open_to_read(file);
      if (may_be_missing) return read_at(from, file, offset, out, segment.rows * bytes);
      std::vector<char> row(bytes);
      read_at(from, file, offset, row.data(), row.size());
      if (std::memcmp(row.data(), out, bytes) == 0) return;
    } catch (const Error& error) {
      if (error.code() != Code::not_found) throw;
      throw Error(Code::data_loss,
                  file.string() + " is missing: it was deleted while the checkpoint was read");
    }
    throw Error(Code::data_loss, file.string() + " is not the file that HDF5 read in its place");
  }
};

CheckpointReader::CheckpointReader(const fs::path& folder) : impl_(std::make_unique<Impl>(folder)) {}
CheckpointReader::CheckpointReader(CheckpointReader&&) noexcept = default;
CheckpointReader& CheckpointReader::operator=(CheckpointReader&&) noexcept = default;
CheckpointReader::~CheckpointReader() = default;

void CheckpointReader::verify() const {
  for (const PartReport& part : impl_->manifest.parts) check_part_data(impl_->folder / part.file, part);
}

const fs::path& CheckpointReader::folder() const noexcept { return impl_->folder; }
std::int64_t CheckpointReader::step() const noexcept { return impl_->manifest.step; }
const std::vector<VariableInfo>& CheckpointReader::variables() const noexcept {
  return impl_->manifest.variables;
}
const std::string& CheckpointReader::user_state() const noexcept { return impl_->manifest.user_state; }
const std::string& CheckpointReader::settings() const noexcept { return impl_->manifest.settings; }
const std::map<std::string, std::string>& CheckpointReader::positions() const noexcept {
  return impl_->manifest.positions;
}

const VariableInfo& CheckpointReader::variable(std::string_view name) const {
  std::string names;
  for (const VariableInfo& variable : variables()) {
    if (variable.name == name) return variable;
    names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", variable.name);
  }
  throw Error(Code::not_found, fmt::format("{} has no variable \"{}\"; it has {}", folder().string(), name,
                                           names.empty() ? "none" : names));
}

void CheckpointReader::read_rows(std::string_view name, std::string_view which, std::uint64_t first_row,
                                 std::uint64_t rows, void* out) const {
  const VariableInfo& info = variable(name);
  const auto slot =
      std::find_if(info.slots.begin(), info.slots.end(), [&](const SlotInfo& s) { return s.name == which; });
  if (which != kValue && slot == info.slots.end()) {
    throw Error(Code::not_found,
                fmt::format("{}: variable \"{}\" has no slot \"{}\"", folder().string(), name, which));
  }
  const auto& shape = which == kValue ? info.shape : slot->shape;
  if (first_row > shape[0] || rows > shape[0] - first_row) {
    throw Error(Code::out_of_range, fmt::format("rows {} to {} of \"{}\", which has {}", first_row,
                                                first_row + rows, name, shape[0]));
  }
  if (rows == 0 || row_bytes(shape, info.dtype) == 0) return;
  const auto segments = impl_->segments(name, which, first_row, rows);
  const DatasetReport& array = *segments.front().dataset;
  impl_->read_virtual(array, first_row, rows, out);
  for (const Segment& segment : segments) {
    const std::uint64_t skip = (segment.first_row - first_row) * row_bytes(array.shape, array.dtype);
    impl_->check_segment(segment, static_cast<char*>(out) + skip);
  }
}

}  // namespace capstan::io
