// checkpoint_folder.hpp -- the folder of --checkpoint-dir: what it lies on, its space, its speed, its locks.
#pragma once

#include <cstdint>
#include <string>

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

/// Of statfs's f_type.
std::string file_system_name(std::uint64_t type);

}  // namespace capstan::launch::doctor
