// corpus.hpp -- text files as byte ranges that workers read independently of each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/data/byte_stream.hpp"

namespace capstan::train::word2vec {

struct CorpusFile {
  std::string path;
  std::int64_t bytes = 0;  // of text: a gzip file is decompressed
};

/// Bytes `begin` to `end` - 1 of a file's text. A word belongs to the range that has its first byte.
struct ByteRange {
  std::string path;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// Consecutive text of one or more files.
using Piece = std::vector<ByteRange>;

/// Returns the files of `paths`, and the files below directories, sorted by path. Throws Error: not_found for
/// a missing path, invalid_argument if there are no bytes, data_loss for a damaged or truncated gzip file.
std::vector<CorpusFile> list_corpus(const std::vector<std::string>& paths);

/// Divides the files into pieces of `bytes` bytes; the last piece may have fewer. REQUIRES: bytes > 0.
std::vector<Piece> divide(const std::vector<CorpusFile>& files, std::int64_t bytes);

/// Reads ranges of files. A gzip file is decompressed on the way: a range after the previous one
/// continues there; any other range starts at the beginning of the file. Used by one thread at a time.
class CorpusReader {
 public:
  /// Returns the text of the words that belong to the range. Throws Error: not_found, data_loss for a damaged
  /// or truncated gzip file, or invalid_argument for a NUL byte, which text does not have.
  std::string read(const ByteRange& range);

 private:
  /// Makes held_ begin at the offset.
  void move_to(const std::string& path, std::uint64_t offset);
  /// Reads until held_ has `size` bytes, or up to the end of the file.
  void hold(std::size_t size);

  std::optional<io::ByteStream> stream_;
  std::string held_;  // the bytes before the stream's offset; the next range may begin in them
};

/// ASCII white space, so that UTF-8 characters stay whole.
constexpr bool is_space(char c) noexcept { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// Calls word(text) for each word and end_of_line() after each line, also after the last one.
template <class Word, class EndOfLine>
void for_each_word(std::string_view text, const Word& word, const EndOfLine& end_of_line) {
  std::size_t i = 0;
  while (i < text.size()) {
    const std::size_t begin = i;
    while (i < text.size() && !is_space(text[i])) ++i;
    if (i > begin) word(text.substr(begin, i - begin));
    if (i < text.size() && text[i++] == '\n') end_of_line();
  }
  end_of_line();
}

}  // namespace capstan::train::word2vec
