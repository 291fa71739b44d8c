// fast_parts.cpp -- written, drained, removed.
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

/// Empty when there is none, or it cannot be read.
std::string text_of(const fs::path& file) {
  try {
    std::error_code error;
    return fs::exists(file, error) ? io::read_whole_file(file) : std::string();
  } catch (const Error&) {
    return {};  // it was removed just now
  }
}

/// Sets `*read` when a row is read.
std::vector<io::PartArray> watched(std::span<const io::PartArray> arrays, bool* read) {
  std::vector<io::PartArray> watched(arrays.begin(), arrays.end());
  for (io::PartArray& array : watched) {
    if (!array.read) continue;
    array.read = [inner = array.read, read](std::uint64_t first, std::uint64_t count, std::byte* out) {
      *read = true;
      inner(first, count, out);
    };
  }
  return watched;
}

}  // namespace

FastParts::FastParts(io::FastPlace location, bool& warned)
    : location_(std::move(location)), warned_(warned), usable_(!location_.folder.empty()) {
  if (!usable_) return;
  try {
    prepare();
  } catch (const std::exception& error) {
    give_up(error);
  }
}

FastParts::~FastParts() {
  if (seen_ || !directory_) return;
  std::error_code ignored;  // the next save removes what stays
  for (const Written& written : written_) fs::remove(location_.folder / written.report.file, ignored);
  fs::remove(location_.folder, ignored);  // when no other ps has files there
  try {
    directory_->remove_if_unused();
  } catch (const std::exception& error) {
    log::warn("{}", error.what());
  }
}

/// Removes what earlier saves left on this host, where the coordinator does not.
void FastParts::prepare() {
  const fs::path parent = location_.folder.parent_path();
  directory_.emplace(io::FastDirectory::create(parent));
  seen_ = !location_.owner.empty() && text_of(parent / io::kOwnerFile) == location_.owner;
  if (!seen_) directory_->remove_checkpoints(location_.folder.filename().string());
  fs::create_directory(location_.folder);
}

void FastParts::give_up(const std::exception& why) {
  usable_ = false;
  if (!std::exchange(warned_, true)) {
    log::warn("--checkpoint-fast-dir is not used on {}, checkpoints are written to their directory: {}",
              cluster::host_name(), why.what());
  }
}

std::optional<io::PartReport> FastParts::write(const std::string& name,
                                               std::span<const io::PartArray> arrays) {
  if (!usable_) return std::nullopt;
  const fs::path file = location_.folder / name;
  bool read = false;
  try {
    io::PartReport report = io::write_part(file, watched(arrays, &read));
    written_.push_back({report, io::open_to_read(file)});
    return report;
  } catch (const Error& error) {
    std::error_code ignored;
    fs::remove(file, ignored);
    if (read || error.code() == Code::invalid_argument) throw;
    give_up(error);
    return std::nullopt;
  }
}

void FastParts::drain(const fs::path& folder, const io::BytesDone& before_each) {
  for (const Written& written : written_) {
    const std::string& name = written.report.file;
    io::copy_part(written.file, location_.folder / name, folder / name, written.report, before_each);
  }
}

}  // namespace capstan::ps
