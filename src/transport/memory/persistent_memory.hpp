// persistent_memory.hpp -- memory that outlives the process that works in it: a file without a name, which
// another process holds open.
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

/// Where other processes of this host find a piece of it.
struct FileLocation {
  std::string path;      // empty: there is no file
  std::uint64_t id = 0;  // the file's first word
  std::uint64_t offset = 0;
};

/// Made by an agent before it forks; its child maps what it needs, and so does the one that takes its place.
/// Pages come into being, zeroed, when they are first touched.
class PersistentMemory {
 public:
  /// Throws Error(internal) when the system has no memfd_create, or no descriptor is left.
  static std::shared_ptr<PersistentMemory> create();
  PersistentMemory(const PersistentMemory&) = delete;
  PersistentMemory& operator=(const PersistentMemory&) = delete;

  /// Bytes [0, kFirst) are its own. Mapped for as long as the process lives. `offset` is a multiple of 4096.
  /// Throws Error(resource_exhausted).
  static constexpr std::uint64_t kFirst = 4096;
  std::span<std::byte> map(std::uint64_t offset, std::uint64_t bytes);
  FileLocation location(std::uint64_t offset) const;
  /// What `map` gave, from `offset` to the end of the file, is no more, and its memory is given back.
  /// REQUIRES: nobody uses it.
  void unmap(std::uint64_t offset, std::span<const std::span<std::byte>> mapped) noexcept;
  /// Some process has mapped something.
  bool used() const noexcept;

 private:
  PersistentMemory(FileDescriptor fd, pid_t owner, std::uint64_t id)
      : fd_(std::move(fd)), owner_(owner), id_(id) {}

  FileDescriptor fd_;
  pid_t owner_;
  std::uint64_t id_;
};

/// Maps `bytes` of another process's kept memory, page-aligned. Null when it is not to be had: another host,
/// or other process or user namespaces.
std::byte* map_kept(const FileLocation& place, std::uint64_t bytes) noexcept;

}  // namespace capstan::transport
