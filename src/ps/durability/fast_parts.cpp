// fast_parts.cpp -- writes, drains and removes the files of one save below --checkpoint-fast-dir.
#include "ps/durability/fast_parts.hpp"

#include <system_error>
#include <utility>

#include "base/log.hpp"
#include "capstan/error.hpp"
#include "cluster/runtime.hpp"
#include "io/hdf5/copy_part.hpp"
#include "io/hdf5/layout.hpp"
#include "io/hdf5/part_writer.hpp"

namespace capstan::ps {
namespace {

namespace fs = std::filesystem;

/// Returns the contents of `file`, or an empty string if it does not exist or cannot be read.
std::string read_text(const fs::path& file) {
  try {
    std::error_code error;
    return fs::exists(file, error) ? io::read_whole_file(file) : std::string();
  } catch (const Error&) {
    return {};  // removed after the check
  }
}

/// Returns copies of `arrays` that set `*read` when a row is read.
std::vector<io::PartArray> track_reads(std::span<const io::PartArray> arrays, bool* read) {
  std::vector<io::PartArray> tracked(arrays.begin(), arrays.end());
  for (io::PartArray& array : tracked) {
    if (!array.read) continue;
    array.read = [inner = array.read, read](std::uint64_t first, std::uint64_t count, std::byte* out) {
      *read = true;
      inner(first, count, out);
    };
  }
  return tracked;
}

}  // namespace

FastParts::FastParts(io::FastLocation location, bool& warned)
    : location_(std::move(location)), warned_(warned), usable_(!location_.directory.empty()) {
  if (!usable_) return;
  try {
    prepare();
  } catch (const std::exception& error) {
    disable(error);
  }
}

FastParts::~FastParts() {
  if (visible_to_coordinator_ || !directory_) return;
  std::error_code ignored;  // the next save removes the files that remain
  for (const Written& written : written_) fs::remove(location_.directory / written.report.file, ignored);
  fs::remove(location_.directory, ignored);  // fails while another ps has files in it
  try {
    directory_->remove_if_unused();
  } catch (const std::exception& error) {
    log::warn("{}", error.what());
  }
}

/// Creates the directory. Removes files that earlier saves left on this host, unless the coordinator sees and
/// removes them.
void FastParts::prepare() {
  const fs::path parent = location_.directory.parent_path();
  directory_.emplace(io::FastDirectory::create(parent));
  visible_to_coordinator_ = !location_.owner.empty() && read_text(parent / io::kOwnerFile) == location_.owner;
  if (!visible_to_coordinator_) directory_->remove_checkpoints(location_.directory.filename().string());
  fs::create_directory(location_.directory);
}

void FastParts::disable(const std::exception& why) {
  usable_ = false;
  if (!std::exchange(warned_, true)) {
    log::warn(
        "cannot use --checkpoint-fast-dir on {}: {}; this ps writes its part of each checkpoint directly to "
        "the checkpoint directory",
        cluster::host_name(), why.what());
  }
}

std::optional<io::PartReport> FastParts::write(const std::string& name,
                                               std::span<const io::PartArray> arrays) {
  if (!usable_) return std::nullopt;
  const fs::path file = location_.directory / name;
  bool read = false;
  try {
    io::PartReport report = io::write_part(file, track_reads(arrays, &read));
    written_.push_back({report, io::open_to_read(file)});
    return report;
  } catch (const Error& error) {
    std::error_code ignored;
    fs::remove(file, ignored);
    if (read || error.code() == Code::invalid_argument) throw;
    disable(error);
    return std::nullopt;
  }
}

void FastParts::drain(const fs::path& directory, const io::ProgressCallback& before_each) {
  for (const Written& written : written_) {
    const std::string& name = written.report.file;
    io::copy_part(written.file, location_.directory / name, directory / name, written.report, before_each);
  }
}

}  // namespace capstan::ps
