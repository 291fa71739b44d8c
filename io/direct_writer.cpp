// direct_writer.cpp -- O_DIRECT writes of complete blocks; the remainder stays buffered until `end`.
#include "io/direct_writer.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

namespace capstan::io {
namespace {

constexpr std::uint64_t kXfsMagic = 0x58465342;  // in linux/magic.h since Linux 5.19

/// Excludes network file systems, which may be slower without write-back caching (not measured), and tmpfs,
/// which is the page cache.
bool is_on_a_local_disk(int file) {
  struct statfs status {};
  if (::fstatfs(file, &status) != 0) return false;
  const auto type = static_cast<std::uint64_t>(status.f_type);
  return type == EXT4_SUPER_MAGIC || type == kXfsMagic || type == OVERLAYFS_SUPER_MAGIC;
}

constexpr std::size_t round_down_to_blocks(std::size_t bytes) {
  return bytes / DirectWriter::kBlockBytes * DirectWriter::kBlockBytes;
}

}  // namespace

DirectWriter::DirectWriter(const std::filesystem::path& path) : path_(path), file_(path) {}

bool DirectWriter::can_write_directly() {
  if (!std::exchange(direct_open_tried_, true)) {
    FileDescriptor file(::open(path_.c_str(), O_WRONLY | O_DIRECT | O_NOFOLLOW | O_CLOEXEC));
    if (file && is_on_a_local_disk(file.get())) direct_ = std::move(file);
  }
  return static_cast<bool>(direct_);
}

void DirectWriter::begin(std::uint64_t offset, std::uint64_t bytes) {
  offset_ = offset;
  directly_ = bytes >= kMinDirectBytes && offset % kBlockBytes == 0 && can_write_directly();
}

std::byte* DirectWriter::staging_buffer(std::size_t bytes) {
  if (filled_ + bytes > buffer_bytes_) {
    const std::size_t capacity = round_down_to_blocks(filled_ + bytes + 2 * kBlockBytes);
    std::unique_ptr<std::byte[], Free> larger(
        static_cast<std::byte*>(std::aligned_alloc(kBlockBytes, capacity)));
    if (!larger) throw std::bad_alloc();
    if (filled_ > 0) std::memcpy(larger.get(), buffer_.get(), filled_);
    buffer_ = std::move(larger);
    buffer_bytes_ = capacity;
  }
  return buffer_.get() + filled_;
}

void DirectWriter::add(std::size_t bytes) {
  filled_ += bytes;
  write(directly_ ? round_down_to_blocks(filled_) : filled_);
}

void DirectWriter::end() {
  directly_ = false;
  write(filled_);
}

void DirectWriter::write(std::size_t bytes) {
  if (bytes == 0) return;
  const std::size_t done = directly_ ? write_directly(bytes) : 0;
  if (done < bytes) file_.write_at(offset_ + done, {buffer_.get() + done, bytes - done});
  offset_ += bytes;
  filled_ -= bytes;
  if (filled_ > 0) std::memmove(buffer_.get(), buffer_.get() + bytes, filled_);
}

/// Returns the number of bytes written. After a short write or EINVAL, the rest of the file goes through the
/// page cache, where a full disk is reported.
std::size_t DirectWriter::write_directly(std::size_t bytes) {
  std::size_t done = 0;
  while (done < bytes) {
    const std::size_t wanted = std::min(bytes - done, kMaxCallBytes);
    const ssize_t put =
        ::pwrite(direct_.get(), buffer_.get() + done, wanted, static_cast<off_t>(offset_ + done));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno != EINVAL) throw file_failed("write", path_, errno);
    done += put < 0 ? 0 : static_cast<std::size_t>(put);
    if (put == static_cast<ssize_t>(wanted)) continue;
    direct_ = {};
    directly_ = false;
    break;
  }
  return done;
}

void DirectWriter::sync() { file_.sync(); }

}  // namespace capstan::io
