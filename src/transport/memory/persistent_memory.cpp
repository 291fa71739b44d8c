// persistent_memory.cpp -- memfd_create, mapped by other processes through /proc.
#include "transport/memory/persistent_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>

#include "base/file_size_signal.hpp"
#include "capstan/error.hpp"

namespace capstan::transport {

std::shared_ptr<PersistentMemory> PersistentMemory::create() {
  FileDescriptor fd(memfd_create(kFileName, MFD_CLOEXEC));
  if (!fd) throw call_failed("memfd_create", std::strerror(errno));
  std::random_device random;
  const std::uint64_t id = (std::uint64_t{random()} << 32) | random() | 1;
  if (ftruncate(fd.get(), kFirstOffset) != 0 || pwrite(fd.get(), &id, sizeof id, 0) != sizeof id) {
    throw call_failed("ftruncate or pwrite of a memfd", std::strerror(errno));
  }
  return std::shared_ptr<PersistentMemory>(new PersistentMemory(std::move(fd), getpid(), id));
}

std::shared_ptr<PersistentMemory> PersistentMemory::adopt(FileDescriptor file, pid_t owner) {
  std::uint64_t id = 0;
  if (pread(file.get(), &id, sizeof id, 0) != sizeof id || id == 0) {
    throw Error(Code::failed_precondition,
                "file descriptor " + std::to_string(file.get()) +
                    ": found no id in its first word, expected the persistent memory of process " +
                    std::to_string(owner) + "; do not close or replace this descriptor before Cluster::join");
  }
  return std::shared_ptr<PersistentMemory>(new PersistentMemory(std::move(file), owner, id));
}

std::span<std::byte> PersistentMemory::map(std::uint64_t offset, std::uint64_t bytes) {
  const auto fail = [&](const char* call) {
    throw Error(Code::resource_exhausted,
                "cannot map " + std::to_string(bytes) + " bytes of shared memory: " + call + ": " +
                    std::strerror(errno) + "; free memory, or see ulimit -f and ulimit -v");
  };
  struct stat now {};
  if (fstat(fd_.get(), &now) != 0) fail("fstat");
  const FileSizeSignalBlock file_size_signal;
  const std::uint64_t end = offset + bytes;
  if (static_cast<std::uint64_t>(now.st_size) < end && ftruncate(fd_.get(), static_cast<off_t>(end)) != 0)
    fail("ftruncate");
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), static_cast<off_t>(offset));
  if (at == MAP_FAILED) {
    const int why = errno;
    unmap(static_cast<std::uint64_t>(now.st_size), {});
    errno = why;
    fail("mmap");
  }
  return {static_cast<std::byte*>(at), bytes};
}

void PersistentMemory::unmap(std::uint64_t offset, std::span<const std::span<std::byte>> mapped) noexcept {
  for (const std::span<std::byte> memory : mapped) (void)munmap(memory.data(), memory.size());
  // The file keeps its size: a process that has mapped these pages must read zeros, not receive SIGBUS.
  struct stat now {};
  if (fstat(fd_.get(), &now) != 0 || static_cast<std::uint64_t>(now.st_size) <= offset) return;
  (void)fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                  now.st_size - static_cast<off_t>(offset));
}

bool PersistentMemory::was_mapped() const noexcept {
  struct stat now {};
  return fstat(fd_.get(), &now) == 0 && static_cast<std::uint64_t>(now.st_size) > kFirstOffset;
}

FileLocation PersistentMemory::location(std::uint64_t offset) const {
  return {"/proc/" + std::to_string(owner_) + "/fd/" + std::to_string(fd_.get()), id_, offset};
}

std::byte* map_persistent(const FileLocation& location, std::uint64_t bytes) noexcept {
  const FileDescriptor fd(open(location.path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) return nullptr;
  // On another host the path may name any file.
  std::uint64_t id = 0;
  void* at = MAP_FAILED;
  if (pread(fd.get(), &id, sizeof id, 0) == sizeof id && id == location.id) {
    at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(),
              static_cast<off_t>(location.offset));
  }
  return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
}

}  // namespace capstan::transport
