// file_size_signal.hpp -- turns a file size limit (ulimit -f) into the error EFBIG, without a signal handler.
#pragma once

#include <csignal>

namespace capstan {

/// Blocks SIGXFSZ in the calling thread, to which the kernel sends it, and discards it at the end of the
/// scope. A write or truncation beyond the file size limit then fails with EFBIG. The disposition of the
/// signal, which belongs to the program, is not changed. Create and destroy it in the same thread. Keeps
/// errno.
class FileSizeSignalBlock {
 public:
  FileSizeSignalBlock() noexcept;
  ~FileSizeSignalBlock();
  FileSizeSignalBlock(const FileSizeSignalBlock&) = delete;
  FileSizeSignalBlock& operator=(const FileSizeSignalBlock&) = delete;

 private:
  bool was_blocked_ = false;
  bool was_pending_ = false;
};

}  // namespace capstan
