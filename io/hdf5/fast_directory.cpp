// fast_directory.cpp -- every removal is relative to a checked descriptor.
#include "io/hdf5/fast_directory.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "io/directory.hpp"
#include "io/hdf5/fast_level.hpp"
#include "io/hdf5/layout.hpp"

namespace capstan::io {
namespace {

namespace fs = std::filesystem;

bool is_checkpoint(std::string_view name) { return name.starts_with("checkpoint-"); }

/// Returns true for the files that CheckpointDirectory and FastLevel write beside the checkpoints.
bool is_record(std::string_view name) {
  if (name.ends_with(kUnfinished)) name.remove_suffix(kUnfinished.size());
  return name == kOwnerFile || name == kLatestFile;
}

FileDescriptor open_base(const fs::path& path) {
  FileDescriptor base = open_directory(path);
  check_writers(base, path, Writers::sticky_too);
  return base;
}

void create_private_directory(const fs::path& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) throw file_failed("create", path, errno);
}

}  // namespace

FastDirectory::FastDirectory(fs::path path)
    : path_(std::move(path)),
      base_(open_base(path_.parent_path())),
      directory_(open_directory(base_, path_.filename(), path_)) {
  check_writers(directory_, path_, Writers::this_user);
}

FastDirectory FastDirectory::create(const fs::path& path) {
  const fs::path base = path.parent_path();
  std::error_code error;
  fs::create_directories(base.parent_path(), error);
  if (error) throw file_failed("create", base.parent_path(), error.value());
  create_private_directory(base);
  (void)open_base(base);
  create_private_directory(path);
  return FastDirectory(path);
}

void FastDirectory::remove_checkpoints(std::string_view keep) const {
  for (const std::string& name : names_in(directory_, path_)) {
    if (is_checkpoint(name) && name != keep) remove_at(directory_, name, path_ / name);
  }
}

void FastDirectory::remove_if_unused() const {
  const std::vector<std::string> names = names_in(directory_, path_);
  if (!std::all_of(names.begin(), names.end(), is_record)) return;
  for (const std::string& name : names) remove_at(directory_, name, path_ / name);
  const bool removed = ::unlinkat(base_.get(), path_.filename().c_str(), AT_REMOVEDIR) == 0;
  // Another ps on this host may have started to use the directory, or removed it.
  if (!removed && errno != ENOENT && errno != ENOTEMPTY && errno != EEXIST)
    throw file_failed("remove", path_, errno);
}

}  // namespace capstan::io
