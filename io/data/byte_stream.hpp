// byte_stream.hpp -- sequential bytes of one file, decompressed if it is compressed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "io/file.hpp"

namespace capstan::io {

/// Compression of a file; `detect`: gzip if the file starts with its magic, else none.
enum class Compression : std::uint8_t { detect, none, gzip, zlib };

/// One thread at a time.
class ByteStream {
 public:
  /// Throws Error, such as not_found.
  explicit ByteStream(std::filesystem::path path, Compression compression = Compression::detect);
  ~ByteStream();
  ByteStream(ByteStream&&) noexcept;
  ByteStream& operator=(ByteStream&&) = delete;

  /// Reads up to `bytes` bytes; returns 0 only at the end. Throws Error(data_loss) if a compressed file is
  /// damaged or truncated.
  std::size_t read(char* out, std::size_t bytes);
  /// Reads exactly `bytes` bytes. Throws Error(data_loss) if fewer bytes are left.
  void read_exactly(char* out, std::size_t bytes);
  /// Offset in the decompressed data.
  std::uint64_t offset() const noexcept { return offset_; }
  /// Sets the offset in the decompressed data. A compressed file is decompressed up to `offset`, from the
  /// current offset or, for a backward seek, from the start.
  void seek(std::uint64_t offset);
  const std::filesystem::path& path() const noexcept { return path_; }
  bool is_compressed() const noexcept { return inflater_ != nullptr; }

 private:
  struct Inflater;
  std::size_t read_file(char* out, std::size_t bytes);

  std::filesystem::path path_;
  FileDescriptor file_;
  std::uint64_t file_offset_ = 0;  // in the file itself
  std::uint64_t offset_ = 0;
  std::unique_ptr<Inflater> inflater_;
};

}  // namespace capstan::io
