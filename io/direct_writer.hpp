// direct_writer.hpp -- many consecutive bytes into a file, past the page cache where that pays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "io/file.hpp"

namespace capstan::io {

/// The kernel copies what is written into pages of its cache, which it first has to find: of a file that is
/// written once and not read soon that is most of the work. So whole blocks are written with O_DIRECT, where
/// they begin at one and are many, to a file system on a disk of this host; everything else as by FileWriter.
/// Nobody who reads the file sees which it was. One thread.
class DirectWriter {
 public:
  static constexpr std::size_t kBlockBytes = 4096;
  /// Fewer bytes than this are not worth it.
  static constexpr std::uint64_t kManyBytes = std::uint64_t{1} << 20;

  /// Of a file that is there.
  explicit DirectWriter(const std::filesystem::path& path);

  /// `bytes` bytes come next, which belong at `offset`. REQUIRES: those before have ended, and no two begins
  /// have bytes in common.
  void begin(std::uint64_t offset, std::uint64_t bytes);
  /// Where the next `bytes` of them are to be put before `add`; aligned for elements of up to 16 bytes, if
  /// all that was added since `begin` is a multiple of their size.
  std::byte* room(std::size_t bytes);
  /// The first `bytes` bytes of the last room. This and `end` throw Error: resource_exhausted (disk full,
  /// quota), internal.
  void add(std::size_t bytes);
  void end();
  /// All that has ended is on the disk when this returns.
  void sync();

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept { std::free(memory); }
  };

  bool can_write_directly();
  /// The first bytes of the buffer.
  void write(std::size_t bytes);
  std::size_t write_directly(std::size_t blocks);

  std::filesystem::path path_;
  FileWriter file_;
  FileDescriptor direct_;
  bool tried_ = false;     // to open it
  bool directly_ = false;  // from `begin` to `end`
  std::unique_ptr<std::byte[], Free> buffer_;
  std::size_t buffer_bytes_ = 0;
  std::size_t filled_ = 0;    // of the buffer
  std::uint64_t offset_ = 0;  // where its first byte belongs
};

}  // namespace capstan::io
