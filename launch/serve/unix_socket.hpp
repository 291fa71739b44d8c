// unix_socket.hpp -- the path of a Unix socket on which a server listens.
#pragma once

#include <sys/types.h>
#include <time.h>

#include <string>

#include "base/file_descriptor.hpp"

namespace capstan::launch::serve {

/// Locks the directory of a path while the result is open. Waits for another process that holds the lock.
/// Throws Error: deadline_exceeded after 10 s; or the directory cannot be opened or locked.
FileDescriptor lock_directory_of(const std::string& path);

/// Removes a socket on which no process listens; does nothing if there is no file. Throws Error:
/// invalid_argument if the path is too long; already_exists if a process listens on it, or it is no socket;
/// permission_denied if it cannot be removed. REQUIRES: the directory is locked until the new server listens,
/// or another start may remove its socket.
void remove_stale_socket(const std::string& path);

/// Removes the socket at the end, unless another process has replaced it.
class SocketFile {
 public:
  /// REQUIRES: a server listens on `path`.
  explicit SocketFile(std::string path);
  SocketFile(const SocketFile&) = delete;
  SocketFile& operator=(const SocketFile&) = delete;
  ~SocketFile();

 private:
  std::string path_;
  ino_t inode_ = 0;
  timespec modified_ = {};  // a later socket may have the same inode
};

}  // namespace capstan::launch::serve
