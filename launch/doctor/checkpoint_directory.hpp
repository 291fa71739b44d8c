// checkpoint_directory.hpp -- checks of --checkpoint-dir: file system, free space, write speed, locks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch/doctor/finding.hpp"
#include "launch/doctor/request.hpp"

namespace capstan::launch::doctor {

/// Properties of the checkpoint directory.
struct DirectoryProbe {
  std::string directory;
  std::string probed;       ///< the directory, or its nearest existing ancestor
  std::string file_system;  ///< "nfs", "lustre", "tmpfs", "0x1234"
  std::uint64_t free_bytes = 0;
  std::string cannot_write = {};  ///< why creating or writing a file failed
  std::string cannot_lock = {};   ///< why flock failed; HDF5 and Capstan need file locks
  double bytes_per_second = 0;    ///< for a file of at most 16 MiB, including fsync
};

/// Writes a file that is unlinked as soon as it is open, so that nothing remains.
DirectoryProbe probe_directory(const std::string& directory);

Finding check_checkpoint_directory(const Request& request);
Finding judge_directory(const DirectoryProbe& probe);

/// Value of --checkpoint-dir, else of CAPSTAN_CHECKPOINT_DIR; "" if neither is set.
std::string checkpoint_directory(const Request& request);

/// A file that one host creates and the other hosts poll for. It is in `directory`, or in its nearest
/// existing ancestor.
class MarkerFile {
 public:
  /// Throws Error(permission_denied) if the file cannot be created.
  explicit MarkerFile(const std::string& directory);
  ~MarkerFile();
  MarkerFile(const MarkerFile&) = delete;
  MarkerFile& operator=(const MarkerFile&) = delete;
  const std::string& path() const noexcept { return path_; }
  /// Polls for 3 s, since a network file system may show the file late.
  static bool is_visible(const std::string& path);

 private:
  std::string path_;
};

/// `blind`: hosts that do not see the marker file of rank 0; `failure`: why rank 0 could not create it.
Finding judge_shared_directory(const std::string& directory, int hosts, const std::vector<std::string>& blind,
                               const std::string& failure);

/// Name of the file system with this f_type of statfs(2); hexadecimal if unknown.
std::string file_system_name(std::uint64_t type);

}  // namespace capstan::launch::doctor
