// byte_stream.hpp -- the bytes of one file in order, unpacked when it is compressed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "io/file.hpp"

namespace capstan::io {

/// How a file is compressed; `detect`: gzip where it begins as gzip does, else not at all.
enum class Compression : std::uint8_t { detect, none, gzip, zlib };

class ByteStream {
 public:
  /// Throws Error(not_found) and the like.
  explicit ByteStream(std::filesystem::path path, Compression compression = Compression::detect);
  ~ByteStream();
  ByteStream(ByteStream&&) noexcept;
  ByteStream& operator=(ByteStream&&) = delete;

  /// Up to `bytes` bytes; 0 at the end only. Throws Error(data_loss) for a compressed file that is damaged or
  /// cut.
  std::size_t read(char* out, std::size_t bytes);
  /// Exactly so many, or Error(data_loss).
  void read_exactly(char* out, std::size_t bytes);
  /// Bytes given so far, unpacked.
  std::uint64_t offset() const noexcept { return offset_; }
  /// In a compressed file all before `offset` is unpacked again.
  void seek(std::uint64_t offset);
  const std::filesystem::path& path() const noexcept { return path_; }
  bool is_compressed() const noexcept { return inflater_ != nullptr; }

 private:
  struct Inflater;
  std::size_t read_file(char* out, std::size_t bytes);

  std::filesystem::path path_;
  FileDescriptor file_;
  std::uint64_t file_offset_ = 0;  // in the file as it is
  std::uint64_t offset_ = 0;
  std::unique_ptr<Inflater> inflater_;
};

}  // namespace capstan::io
