// byte_stream.hpp -- the bytes of one file in order, unpacked when it is gzip.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "io/file.hpp"

namespace capstan::io {

class ByteStream {
 public:
  /// Throws Error(not_found) and the like.
  explicit ByteStream(std::filesystem::path path);
  ~ByteStream();
  ByteStream(ByteStream&&) noexcept;
  ByteStream& operator=(ByteStream&&) = delete;

  /// Up to `bytes` bytes; 0 at the end only. Throws Error(data_loss) for a gzip file that is damaged or cut.
  std::size_t read(char* out, std::size_t bytes);
  /// Exactly so many, or Error(data_loss).
  void read_exactly(char* out, std::size_t bytes);
  /// Bytes given so far, unpacked.
  std::uint64_t offset() const noexcept { return offset_; }
  /// In a gzip file all before `offset` is unpacked again.
  void seek(std::uint64_t offset);
  const std::filesystem::path& path() const noexcept { return path_; }
  bool is_gzip() const noexcept { return gzip_ != nullptr; }

 private:
  struct Gzip;
  std::size_t read_file(char* out, std::size_t bytes);

  std::filesystem::path path_;
  FileDescriptor file_;
  std::uint64_t file_offset_ = 0;  // in the file as it is
  std::uint64_t offset_ = 0;
  std::unique_ptr<Gzip> gzip_;
};

}  // namespace capstan::io
