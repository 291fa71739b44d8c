// corpus.cpp -- see corpus.hpp.
#include "train/word2vec/corpus.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/assert.hpp"
#include "capstan/error.hpp"

namespace capstan::train::word2vec {
namespace {

namespace fs = std::filesystem;

/// Bytes that are read at a time to complete the last word of a range.
constexpr std::size_t kMoreBytes = 256;

/// Throws Error(not_found) with a hint if the file does not exist.
io::ByteStream open_text(const std::string& path) {
  try {
    return io::ByteStream(path);
  } catch (const Error& error) {
    if (error.code() != Code::not_found) throw;
    throw Error(Code::not_found, fmt::format("--data: cannot read {}; all workers need the files", path));
  }
}

std::int64_t text_bytes(const fs::path& path) {
  io::ByteStream stream = open_text(path.string());
  if (!stream.is_compressed()) return static_cast<std::int64_t>(fs::file_size(path));
  std::vector<char> text(1 << 18);
  while (stream.read(text.data(), text.size()) > 0) {
  }
  return static_cast<std::int64_t>(stream.offset());
}

}  // namespace

std::vector<CorpusFile> list_corpus(const std::vector<std::string>& paths) {
  std::vector<CorpusFile> files;
  const auto add = [&](const fs::path& path) { files.push_back({path.string(), text_bytes(path)}); };
  for (const std::string& path : paths) {
    std::error_code error;
    if (fs::is_regular_file(path, error)) {
      add(path);
    } else if (fs::is_directory(path, error)) {
      std::vector<fs::path> found;
      for (const auto& entry : fs::recursive_directory_iterator(path)) {
        if (entry.is_regular_file()) found.push_back(entry.path());
      }
      std::ranges::sort(found);
      std::ranges::for_each(found, add);
    } else {
      throw Error(Code::not_found,
                  fmt::format("--data: {} does not exist, expected a text file or a directory", path));
    }
  }
  if (std::ranges::all_of(files, [](const CorpusFile& file) { return file.bytes == 0; })) {
    throw Error(Code::invalid_argument, fmt::format("--data: found {} files without a byte in {}, expected "
                                                    "text",
                                                    files.size(), fmt::join(paths, ", ")));
  }
  return files;
}

std::vector<Piece> divide(const std::vector<CorpusFile>& files, std::int64_t bytes) {
  CAPSTAN_ASSERT(bytes > 0);
  std::vector<Piece> pieces;
  std::int64_t missing = 0;  // bytes that the last piece lacks
  for (const CorpusFile& file : files) {
    for (std::int64_t begin = 0; begin < file.bytes;) {
      if (missing == 0) {
        pieces.emplace_back();
        missing = bytes;
      }
      const std::int64_t size = std::min(missing, file.bytes - begin);
      pieces.back().push_back({file.path, begin, begin + size});
      begin += size;
      missing -= size;
    }
  }
  return pieces;
}

void CorpusReader::move_to(const std::string& path, std::uint64_t offset) {
  if (!stream_ || stream_->path() != path || offset < stream_->offset() - held_.size()) {
    stream_.reset();
    held_.clear();
    stream_.emplace(open_text(path));
  }
  if (offset >= stream_->offset()) {
    held_.clear();
    stream_->seek(offset);
  } else {
    held_.erase(0, held_.size() - static_cast<std::size_t>(stream_->offset() - offset));
  }
}

void CorpusReader::hold(std::size_t size) {
  std::size_t have = held_.size();
  if (have >= size) return;
  held_.resize(size);
  try {
    for (std::size_t got = 1; got > 0 && have < size; have += got) {
      got = stream_->read(held_.data() + have, size - have);
    }
  } catch (...) {
    stream_.reset();
    held_.clear();
    throw;
  }
  held_.resize(have);
}

std::string CorpusReader::read(const ByteRange& range) {
  // The byte before the range tells whether its first word begins earlier.
  const std::int64_t from = std::max<std::int64_t>(range.begin - 1, 0);
  const auto size = static_cast<std::size_t>(range.end - from);
  move_to(range.path, static_cast<std::uint64_t>(from));
  hold(size);
  std::size_t end = std::min(size, held_.size());
  bool complete = end == 0 || is_space(held_[end - 1]);  // the last word
  while (!complete) {
    if (end == held_.size()) hold(end + kMoreBytes);
    complete = end == held_.size() || is_space(held_[end]);
    if (!complete) ++end;
  }
  std::string text = held_.substr(0, end);
  const std::size_t nul = text.find('\0');
  if (nul != std::string::npos) {
    throw Error(Code::invalid_argument,
                fmt::format("--data: {} has a NUL byte at offset {}, expected text or a gzip file",
                            range.path, from + static_cast<std::int64_t>(nul)));
  }
  if (range.begin > 0) {
    const auto first = std::ranges::find_if(text, is_space);  // the end of a word of the range before
    const bool has_own = static_cast<std::size_t>(first - text.begin()) < size;
    text.erase(text.begin(), has_own ? first : text.end());
  }
  return text;
}

}  // namespace capstan::train::word2vec
