// persistent_memory.hpp -- memory that outlives the process that uses it: an unnamed file that another
// process keeps open.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/file_descriptor.hpp"

namespace capstan::transport {

/// Location of a range of the file, for other processes of this host.
struct FileLocation {
  std::string path;      // empty: there is no file
  std::uint64_t id = 0;  // the file's first word
  std::uint64_t offset = 0;
};

/// An agent creates this memory before it forks. The child maps ranges of the memory, and so does the child's
/// replacement. A child that executes a program passes the file descriptor on. Pages are zero, and allocated
/// on first access.
class PersistentMemory {
 public:
  /// Throws Error(internal) if memfd_create is missing or no file descriptor is left.
  static std::shared_ptr<PersistentMemory> create();
  static constexpr const char* kFileName = "capstan-ps";
  /// Uses the memory of `owner`, the agent, in a program that inherited the file across exec. Throws
  /// Error(failed_precondition) if `file` is another file. REQUIRES: the descriptor has the same number in
  /// `owner`.
  static std::shared_ptr<PersistentMemory> adopt(FileDescriptor file, pid_t owner);
  PersistentMemory(const PersistentMemory&) = delete;
  PersistentMemory& operator=(const PersistentMemory&) = delete;

  /// Maps a range until the process ends. `offset` is a multiple of 4096 and at least kFirstOffset, because
  /// this object uses the bytes before that. Throws Error(resource_exhausted).
  static constexpr std::uint64_t kFirstOffset = 4096;
  std::span<std::byte> map(std::uint64_t offset, std::uint64_t bytes);
  FileLocation location(std::uint64_t offset) const;
  /// Unmaps the ranges from `offset` to the end of the file, and frees their memory; processes that have
  /// mapped them read zeros. REQUIRES: no thread of this process uses them.
  void unmap(std::uint64_t offset, std::span<const std::span<std::byte>> mapped) noexcept;
  /// Returns true if a process has ever mapped a range.
  bool was_mapped() const noexcept;
  int descriptor() const noexcept { return fd_.get(); }

 private:
  PersistentMemory(FileDescriptor fd, pid_t owner, std::uint64_t id)
      : fd_(std::move(fd)), owner_(owner), id_(id) {}

  FileDescriptor fd_;
  pid_t owner_;
  std::uint64_t id_;
};

/// Maps `bytes` of another process's persistent memory, page-aligned. Returns null if that is not possible:
/// the process is on another host, or in another PID or user namespace.
std::byte* map_persistent(const FileLocation& location, std::uint64_t bytes) noexcept;

}  // namespace capstan::transport
