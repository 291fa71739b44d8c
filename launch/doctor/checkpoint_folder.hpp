// checkpoint_folder.hpp -- the folder of --checkpoint-dir: what it lies on, its space, its speed, its locks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch/doctor/finding.hpp"
#include "launch/doctor/request.hpp"

namespace capstan::launch::doctor {

struct FolderLook {
  std::string folder;
  std::string tried;        ///< the folder, or the nearest one above it that exists
  std::string file_system;  ///< "nfs", "lustre", "tmpfs", "0x1234"
  std::uint64_t free_bytes = 0;
  std::string cannot_write = {};  ///< why no file could be made or written
  std::string cannot_lock = {};   ///< why flock refuses, which HDF5 and Capstan use
  double bytes_per_second = 0;    ///< of a file of at most 16 MiB, fsync included
};

/// Makes a file there, without a name as soon as it is open, so that nothing stays behind.
FolderLook look_at_folder(const std::string& folder);

Finding check_checkpoint_folder(const Request& request);
Finding judge_folder(const FolderLook& look);

/// The folder of --checkpoint-dir, or of CAPSTAN_CHECKPOINT_DIR; empty where neither says one.
std::string checkpoint_folder(const Request& request);

/// A file that one host makes and the others look for, below the nearest folder that exists.
class Mark {
 public:
  /// Throws Error(permission_denied) when it cannot be made.
  explicit Mark(const std::string& folder);
  ~Mark();
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;
  const std::string& path() const noexcept { return path_; }
  /// Looks for as long as a network's file system may need to show it.
  static bool is_there(const std::string& path);

 private:
  std::string path_;
};

/// Hosts that do not see what rank 0's has made; `failure`: it could make nothing.
Finding judge_shared_folder(const std::string& folder, int hosts, const std::vector<std::string>& blind,
                            const std::string& failure);

/// Of statfs's f_type.
std::string file_system_name(std::uint64_t type);

}  // namespace capstan::launch::doctor
