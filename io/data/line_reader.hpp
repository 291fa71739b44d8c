// line_reader.hpp -- reads a text file line by line; locations for error messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "capstan/serialize.hpp"
#include "io/data/byte_stream.hpp"

namespace capstan::io {

/// Lines end with LF or CRLF; the last line may end with the file instead. Skips a byte order mark. One
/// thread at a time.
class LineReader {
 public:
  explicit LineReader(const std::filesystem::path& path);

  /// Returns false at the end. `line` is valid until the next call.
  bool next(std::string_view& line);
  void rewind() { seek(0, 0); }
  /// Byte offset of the next line.
  std::uint64_t offset() const noexcept { return stream_.offset() - (end_ - begin_); }
  /// Continues at byte `offset`; location() counts lines from there. Throws Error(invalid_argument) for a
  /// gzip file.
  void skip_to(std::uint64_t offset);

  /// "\n" or "\r\n": the end of the last line read.
  std::string_view line_end() const noexcept { return carriage_return_ ? "\r\n" : "\n"; }
  /// Location of the last line read: "data/train.txt:17".
  std::string location() const;
  /// Throws Error(invalid_argument) "<location>: <fault>".
  [[noreturn]] void throw_error(const std::string& fault) const;

  void write_position(Writer& out) const;
  void read_position(Reader& in);

 private:
  void seek(std::uint64_t offset, std::uint64_t line);
  bool fill();

  ByteStream stream_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // unread bytes of the buffer
  std::uint64_t line_ = 0;
  std::uint64_t from_ = 0;  // byte offset from which lines are counted
  bool ended_ = false;
  bool carriage_return_ = false;
};

}  // namespace capstan::io
