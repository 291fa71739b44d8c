// checkpoint_reader.cpp -- what a manifest says, and rows from where it says that they lie; the master is for
// others.
#include "io/hdf5/checkpoint_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "capstan/error.hpp"
#include "io/checksum.hpp"
#include "io/file.hpp"
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

/// Rows of a request that one part holds.
struct Segment {
  const PartReport* part;
  const DatasetReport* dataset;
  std::uint64_t first_row;
  std::uint64_t rows;
};

void read_segment(const fs::path& folder, const Segment& segment, char* out) {
  const auto file = folder / segment.part->file;
  const DatasetReport& dataset = *segment.dataset;
  const std::uint64_t bytes = row_bytes(dataset.shape, dataset.dtype);
  try {
    const FileDescriptor from = open_to_read(file);
    read_at(from, file, dataset.offset + (segment.first_row - dataset.first_row) * bytes, out,
            segment.rows * bytes);
  } catch (const Error& error) {
    if (error.code() != Code::not_found) throw;
    throw Error(Code::data_loss, file.string() + " is missing: it was deleted while the checkpoint was read");
  }
}

}  // namespace

struct CheckpointReader::Impl {
  fs::path folder;
  Manifest manifest;

  explicit Impl(const fs::path& from) : folder(from) {
    check_is_folder(folder);
    manifest = read_manifest(folder);
    check_master(folder / kMasterFile, manifest.master_bytes, manifest.master_xxh3);
    for (const PartReport& part : manifest.parts) check_part(folder / part.file, part);
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
};

CheckpointReader::CheckpointReader(const fs::path& folder) : impl_(std::make_unique<Impl>(folder)) {}
CheckpointReader::CheckpointReader(CheckpointReader&&) noexcept = default;
CheckpointReader& CheckpointReader::operator=(CheckpointReader&&) noexcept = default;
CheckpointReader::~CheckpointReader() = default;

void CheckpointReader::verify() const {
  for (const PartReport& part : impl_->manifest.parts) check_part_data(impl_->folder / part.file, part);
}

const fs::path& CheckpointReader::folder() const noexcept { return impl_->folder; }
const Manifest& CheckpointReader::manifest() const noexcept { return impl_->manifest; }
std::int64_t CheckpointReader::step() const noexcept { return impl_->manifest.step; }
const std::vector<VariableInfo>& CheckpointReader::variables() const noexcept {
  return impl_->manifest.variables;
}
const std::string& CheckpointReader::user_state() const noexcept { return impl_->manifest.user_state; }
const std::string& CheckpointReader::settings() const noexcept { return impl_->manifest.settings; }
const std::map<std::string, std::string>& CheckpointReader::positions() const noexcept {
  return impl_->manifest.positions;
}

const std::map<std::string, std::int64_t>& CheckpointReader::counters() const noexcept {
  return impl_->manifest.counters;
}
const std::string& CheckpointReader::written_by() const noexcept { return impl_->manifest.written_by; }
const std::vector<PartReport>& CheckpointReader::parts() const noexcept { return impl_->manifest.parts; }

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
  const DType dtype = which == kValue ? info.dtype : slot->dtype;
  if (first_row > shape[0] || rows > shape[0] - first_row) {
    throw Error(Code::out_of_range, fmt::format("rows {} to {} of \"{}\", which has {}", first_row,
                                                first_row + rows, name, shape[0]));
  }
  const std::uint64_t bytes = row_bytes(shape, dtype);
  if (bytes == 0) return;
  for (const Segment& segment : impl_->segments(name, which, first_row, rows)) {
    read_segment(impl_->folder, segment, static_cast<char*>(out) + (segment.first_row - first_row) * bytes);
  }
}

}  // namespace capstan::io
