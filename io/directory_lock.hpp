// directory_lock.hpp -- one job at a time writes into a folder.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>

namespace capstan::io {

/// What keeps other processes out of a folder while it lives: flock on the file "lock" in it, which says who
/// holds it. The kernel lets go when the process ends, however it ends. All of one process share one.
class DirectoryLock {
 public:
  static constexpr const char* kFile = "lock";

  /// The folder must be there. Waits so long for another job that is about to end. Throws
  /// Error(failed_precondition) that says who holds it, on which host and since when. Where the file system
  /// knows no locks there is none, and the log says so.
  static std::shared_ptr<const DirectoryLock> take(const std::filesystem::path& folder,
                                                   std::chrono::milliseconds timeout);
  ~DirectoryLock();

  /// Returns false once the folder was removed, or another one was put in its place: another job may have
  /// locked that one. Any thread.
  bool is_current() const;
  /// Throws Error(failed_precondition) that names the folder unless `is_current`.
  void require_current() const;

  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  struct Held;
  explicit DirectoryLock(std::unique_ptr<Held> held);

  std::unique_ptr<Held> held_;
};

}  // namespace capstan::io
