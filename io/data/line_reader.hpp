// line_reader.hpp -- a text file line by line, with the place of each for error messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "capstan/serialize.hpp"
#include "io/data/byte_stream.hpp"

namespace capstan::io {

/// Lines end with LF or CRLF, the last may end with the file. A byte order mark is passed over.
class LineReader {
 public:
  explicit LineReader(const std::filesystem::path& path);

  /// False at the end. `line` is valid until the next call.
  bool next(std::string_view& line);
  void rewind() { seek(0, 0); }
  /// Where the next line begins, in bytes.
  std::uint64_t offset() const noexcept { return stream_.offset() - (end_ - begin_); }
  /// The next line begins there. Lines are counted from there on, and place() says so. Throws
  /// Error(invalid_argument) for a gzip file.
  void skip_to(std::uint64_t offset);

  /// "\n" or "\r\n", of the line that was given last.
  std::string_view line_end() const noexcept { return carriage_return_ ? "\r\n" : "\n"; }
  /// "folder/train.txt:17", of the line that was given last.
  std::string place() const;
  /// Error(invalid_argument) "place: what".
  [[noreturn]] void refuse(const std::string& what) const;

  void write_position(Writer& out) const;
  void read_position(Reader& in);

 private:
  void seek(std::uint64_t offset, std::uint64_t line);
  bool fill();

  ByteStream stream_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // what was read and not given yet
  std::uint64_t line_ = 0;
  std::uint64_t from_ = 0;  // the byte from which lines are counted
  bool ended_ = false;
  bool carriage_return_ = false;
};

}  // namespace capstan::io
