// unix_socket.hpp -- the path of a Unix socket on which a server listens.
#pragma once

#include <sys/types.h>

#include <string>

namespace capstan::launch::serve {

/// Removes a socket on which no process listens; does nothing if there is no file. Throws Error:
/// invalid_argument if the path is too long; already_exists if a process listens on it, or it is no socket;
/// permission_denied if it cannot be removed.
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
  ino_t inode_;
};

}  // namespace capstan::launch::serve
