// directory_lock.hpp -- one job at a time writes to a directory.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>

namespace capstan::io {

/// Exclusive lock on a directory, held until destruction: flock on the file "lock" in it, whose text names
/// the holder. The kernel releases the lock when the process exits, however it exits. Within a process, all
/// callers share one lock per directory.
class DirectoryLock {
 public:
  static constexpr const char* kFile = "lock";

  /// Locks an existing directory; waits up to `timeout` for another job to release it. Throws
  /// Error(failed_precondition), which names the holder, its host and its start time. If the file system does
  /// not support locks, logs a warning and returns a lock that excludes no other process.
  static std::shared_ptr<const DirectoryLock> take(const std::filesystem::path& directory,
                                                   std::chrono::milliseconds timeout);
  ~DirectoryLock();

  /// Returns false if the directory was removed or replaced: another job may have locked the replacement. Any
  /// thread.
  bool is_current() const;
  /// Throws Error(failed_precondition), which names the directory, if is_current() is false.
  void require_current() const;

  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  struct Held;
  explicit DirectoryLock(std::unique_ptr<Held> held);

  std::unique_ptr<Held> held_;
};

}  // namespace capstan::io
