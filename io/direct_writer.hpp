// direct_writer.hpp -- large sequential writes that bypass the page cache where that pays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "io/file.hpp"

namespace capstan::io {

/// Writes complete, aligned blocks with O_DIRECT if the range is at least kMinDirectBytes long, starts at a
/// block boundary and lies on a local disk; otherwise writes as FileWriter does. For a file that is written
/// once and not read soon, allocating and filling page-cache pages is most of the cost. Readers see no
/// difference. One thread.
class DirectWriter {
 public:
  static constexpr std::size_t kBlockBytes = 4096;
  /// Shorter ranges go through the page cache.
  static constexpr std::uint64_t kMinDirectBytes = std::uint64_t{1} << 20;

  /// Opens an existing file.
  explicit DirectWriter(const std::filesystem::path& path);

  /// Starts a range of `bytes` bytes at `offset`. REQUIRES: the previous range has ended; ranges do not
  /// overlap.
  void begin(std::uint64_t offset, std::uint64_t bytes);
  /// Returns the buffer for the next `bytes` bytes, valid until the next call. Aligned for elements of up to
  /// 16 bytes if the bytes added since `begin` are a multiple of the element size.
  std::byte* staging_buffer(std::size_t bytes);
  /// Appends the first `bytes` bytes of the last staging buffer. This and `end` throw Error:
  /// resource_exhausted (disk full, quota), internal.
  void add(std::size_t bytes);
  void end();
  /// Returns when all ended ranges are durable.
  void sync();

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept { std::free(memory); }
  };

  bool can_write_directly();
  /// Writes and drops the first `bytes` bytes of the buffer.
  void write(std::size_t bytes);
  std::size_t write_directly(std::size_t bytes);

  std::filesystem::path path_;
  FileWriter file_;
  FileDescriptor direct_;
  bool direct_open_tried_ = false;
  bool directly_ = false;  // the current range uses O_DIRECT
  std::unique_ptr<std::byte[], Free> buffer_;
  std::size_t buffer_bytes_ = 0;
  std::size_t filled_ = 0;    // bytes in the buffer
  std::uint64_t offset_ = 0;  // file offset of the buffer's first byte
};

}  // namespace capstan::io
