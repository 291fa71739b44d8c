// corpus.cpp -- see corpus.hpp.
#include "train/word2vec/corpus.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/assert.hpp"
#include "capstan/error.hpp"

namespace capstan::train::word2vec {
namespace {

namespace fs = std::filesystem;

/// Bytes that are read at a time to complete the last word of a range.
constexpr std::size_t kMoreBytes = 256;

void read_more(std::ifstream& file, std::size_t size, std::string& text) {
  const std::size_t before = text.size();
  text.resize(before + size);
  file.read(text.data() + before, static_cast<std::streamsize>(size));
  text.resize(before + static_cast<std::size_t>(file.gcount()));
}

}  // namespace

std::vector<CorpusFile> list_corpus(const std::vector<std::string>& paths) {
  std::vector<CorpusFile> files;
  const auto add = [&](const fs::path& path) {
    files.push_back({path.string(), static_cast<std::int64_t>(fs::file_size(path))});
  };
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

std::string read_range(const ByteRange& range) {
  std::ifstream file(range.path, std::ios::binary);
  if (!file) {
    throw Error(Code::not_found,
                fmt::format("--data: cannot read {}; all workers need the files", range.path));
  }
  // The byte before the range tells whether its first word begins earlier.
  const std::int64_t from = std::max<std::int64_t>(range.begin - 1, 0);
  file.seekg(from);
  std::string text;
  read_more(file, static_cast<std::size_t>(range.end - from), text);
  bool complete = text.empty() || is_space(text.back());  // the last word
  while (file && !complete) {
    const std::size_t before = text.size();
    read_more(file, kMoreBytes, text);
    const auto space = std::find_if(text.begin() + static_cast<std::ptrdiff_t>(before), text.end(), is_space);
    complete = space != text.end();
    text.erase(space, text.end());
  }
  const std::size_t nul = text.find('\0');
  if (nul != std::string::npos) {
    throw Error(Code::invalid_argument,
                fmt::format("--data: {} has a NUL byte at offset {}, expected uncompressed text", range.path,
                            from + static_cast<std::int64_t>(nul)));
  }
  if (range.begin > 0) {
    const auto first = std::ranges::find_if(text, is_space);  // the end of a word of the range before
    const auto size = static_cast<std::size_t>(range.end - from);
    const bool has_own = static_cast<std::size_t>(first - text.begin()) < size;
    text.erase(text.begin(), has_own ? first : text.end());
  }
  return text;
}

}  // namespace capstan::train::word2vec
