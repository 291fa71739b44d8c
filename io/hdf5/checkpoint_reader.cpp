// checkpoint_reader.cpp -- reads rows at the offsets in the manifest; the master is for other programs.
#include "io/hdf5/checkpoint_reader.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <system_error>
#include <utility>

#include "capstan/error.hpp"
#include "io/checksum.hpp"
#include "io/file.hpp"
#include "io/hdf5/changed_rows.hpp"
#include "io/hdf5/layout.hpp"
#include "io/hdf5/manifest.hpp"
#include "io/hdf5/verify.hpp"

namespace capstan::io {
namespace {

namespace fs = std::filesystem;

void check_is_directory(const fs::path& path) {
  std::error_code error;
  const auto status = fs::status(path, error);
  if (status.type() == fs::file_type::none) throw file_failed("read", path, error.value());
  if (!fs::exists(status)) throw Error(Code::not_found, fmt::format("no checkpoint at {}", path.string()));
  if (fs::is_directory(status)) return;
  const std::string kind = !looks_like_hdf5(path)                           ? "a file"
                           : fs::exists(path.parent_path() / kManifestFile) ? "one file of a checkpoint"
                                                                            : "an HDF5 file";
  throw Error(Code::data_loss,
              fmt::format("{} is {}, expected a directory with a {}; pass the path of the checkpoint, or of "
                          "the directory of all checkpoints",
                          path.string(), kind, kManifestFile));
}

/// Rows of a request within one part.
struct Segment {
  const PartReport* part;
  const DatasetReport* dataset;
  std::uint64_t first_row;
  std::uint64_t rows;
};

/// Identifies a file independently of its name.
using FileId = std::pair<dev_t, ino_t>;
FileId id_of(const FileDescriptor& file, const fs::path& path) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw file_failed("stat", path, errno);
  return {status.st_dev, status.st_ino};
}

/// `to` is the output location of row `first_row` of the request; `id` identifies the file that was checked.
void read_segment(const fs::path& directory, const Segment& segment, const FileId& id,
                  std::uint64_t first_row, char* to) {
  const auto file = directory / segment.part->file;
  const DatasetReport& dataset = *segment.dataset;
  const std::uint64_t bytes = row_bytes(dataset.shape, dataset.dtype);
  char* out = to + (segment.first_row - first_row) * bytes;
  try {
    const FileDescriptor from = open_to_read(file);
    if (id_of(from, file) != id)
      throw Error(Code::data_loss, file.string() + " was replaced after the checkpoint was opened");
    if (dataset.changed) {
      apply_changed_rows(from, file, changed_rows(numbers_of(*segment.part, dataset), dataset),
                         segment.first_row, segment.rows, reinterpret_cast<std::byte*>(out));
      return;
    }
    read_at(from, file, dataset.offset + (segment.first_row - dataset.first_row) * bytes, out,
            segment.rows * bytes);
  } catch (const Error& error) {
    if (error.code() != Code::not_found) throw;
    throw Error(Code::data_loss, file.string() + " is missing: deleted after the checkpoint was opened");
  }
}

/// Returns the array's shape and sets `dtype`; null if there is no such slot.
const std::vector<std::uint64_t>* shape_of(const VariableInfo& variable, std::string_view component,
                                           DType& dtype) {
  dtype = variable.dtype;
  if (component == kValue) return &variable.shape;
  for (const SlotInfo& slot : variable.slots) {
    if (slot.name != component) continue;
    dtype = slot.dtype;
    return &slot.shape;
  }
  return nullptr;
}

const VariableInfo* find(const std::vector<VariableInfo>& variables, std::string_view name) {
  const auto found = std::lower_bound(variables.begin(), variables.end(), name,
                                      [](const VariableInfo& v, std::string_view n) { return v.name < n; });
  return found == variables.end() || found->name != name ? nullptr : &*found;
}

}  // namespace

struct CheckpointReader::Impl {
  fs::path directory;
  Manifest manifest;
  std::unique_ptr<CheckpointReader> base;
  std::map<std::string, FileId> files;  // files of the parts, by name

  explicit Impl(const fs::path& from) : directory(from) {
    check_is_directory(directory);
    manifest = read_manifest(directory);
    check_master(directory / kMasterFile, manifest.master_bytes, manifest.master_xxh3);
    for (const PartReport& part : manifest.parts) {
      const auto file = directory / part.file;
      check_hdf5_file(file, part.bytes);  // first: reports a missing file as such
      files[part.file] = id_of(open_to_read(file), file);
      check_part(file, part);
    }
    if (!manifest.base) return;
    base = std::make_unique<CheckpointReader>(find_base(directory, *manifest.base));
    for (const VariableInfo& variable : manifest.variables) check_rows_present(variable);
  }

  bool base_has(const VariableInfo& variable, std::string_view component) const {
    if (!base) return false;
    const VariableInfo* in_base = find(base->variables(), variable.name);
    DType dtype{}, base_dtype{};
    const auto* shape = shape_of(variable, component, dtype);
    const auto* base_shape = in_base == nullptr ? nullptr : shape_of(*in_base, component, base_dtype);
    return shape != nullptr && base_shape != nullptr && *shape == *base_shape && dtype == base_dtype;
  }

  /// Throws Error(data_loss) if some rows are neither in the increment nor in its base.
  void check_rows_present(const VariableInfo& variable) const {
    const auto check = [&](std::string_view component) {
      if (variable.changed == variable.shape.at(0) || base_has(variable, component)) return;
      throw Error(Code::data_loss,
                  fmt::format("{} has {} of {} rows of {} of \"{}\", and {} has no array of that shape",
                              directory.string(), variable.changed.value_or(0), variable.shape.at(0),
                              component, variable.name, manifest.base->checkpoint));
    };
    check(kValue);
    for (const SlotInfo& slot : variable.slots) check(slot.name);
  }

  std::vector<Segment> segments(std::string_view variable, std::string_view component,
                                std::uint64_t first_row, std::uint64_t rows) const {
    std::vector<Segment> found;
    for (const PartReport& part : manifest.parts) {
      for (const DatasetReport& dataset : part.datasets) {
        if (dataset.variable != variable || dataset.component != component) continue;
        const auto begin = std::max(first_row, dataset.first_row);
        const auto end = std::min(first_row + rows, dataset.first_row + dataset.rows);
        if (begin < end) found.push_back({&part, &dataset, begin, end - begin});
      }
    }
    return found;
  }
};

const CheckpointReader* CheckpointReader::base() const noexcept { return impl_->base.get(); }

bool CheckpointReader::base_has(std::string_view name, std::string_view component) const {
  const VariableInfo* found = find(variables(), name);
  return found != nullptr && impl_->base_has(*found, component);
}

CheckpointReader::CheckpointReader(const fs::path& directory) : impl_(std::make_unique<Impl>(directory)) {}
CheckpointReader::CheckpointReader(CheckpointReader&&) noexcept = default;
CheckpointReader& CheckpointReader::operator=(CheckpointReader&&) noexcept = default;
CheckpointReader::~CheckpointReader() = default;

void CheckpointReader::verify() const {
  if (impl_->base) impl_->base->verify();
  for (const PartReport& part : impl_->manifest.parts) check_part_data(impl_->directory / part.file, part);
}

const fs::path& CheckpointReader::directory() const noexcept { return impl_->directory; }
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
  if (const VariableInfo* found = find(variables(), name)) return *found;
  std::string names;
  for (const VariableInfo& variable : variables()) {
    names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", variable.name);
  }
  throw Error(Code::not_found, fmt::format("{} has no variable \"{}\"; it has {}", directory().string(), name,
                                           names.empty() ? "none" : names));
}

void CheckpointReader::read_rows(std::string_view name, std::string_view component, std::uint64_t first_row,
                                 std::uint64_t rows, void* out) const {
  const VariableInfo& info = variable(name);
  DType dtype{};
  const auto* found = shape_of(info, component, dtype);
  if (found == nullptr) {
    throw Error(Code::not_found,
                fmt::format("{}: variable \"{}\" has no slot \"{}\"", directory().string(), name, component));
  }
  const auto& shape = *found;
  if (first_row > shape[0] || rows > shape[0] - first_row) {
    throw Error(Code::out_of_range, fmt::format("cannot read rows {} to {} of \"{}\", which has {} rows",
                                                first_row, first_row + rows, name, shape[0]));
  }
  const std::uint64_t bytes = row_bytes(shape, dtype);
  if (bytes == 0) return;
  if (impl_->base_has(info, component)) impl_->base->read_rows(name, component, first_row, rows, out);
  for (const Segment& segment : impl_->segments(name, component, first_row, rows))
    read_segment(impl_->directory, segment, impl_->files.at(segment.part->file), first_row,
                 static_cast<char*>(out));
}

}  // namespace capstan::io
