// vectors_file.cpp -- see vectors_file.hpp.
#include "train/word2vec/vectors_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "base/file_size_signal.hpp"
#include "capstan/error.hpp"

namespace capstan::train::word2vec {
namespace {

constexpr std::size_t kRowsPerRead = 8192;

Error not_writable(const std::string& path) {
  return Error(Code::permission_denied,
               fmt::format("--output: cannot write {}, expected a writable path", path));
}

}  // namespace

void check_writable(const std::string& path) {
  if (!std::ofstream(path, std::ios::app)) throw not_writable(path);
}

void write_vectors(const std::string& path, VectorsFormat format, const std::vector<std::string>& words,
                   std::size_t dim,
                   const std::function<void(std::uint64_t first, std::span<float> rows)>& read_rows) {
  const FileSizeSignalBlock block;
  std::ofstream file(path, std::ios::binary);
  file << words.size() << ' ' << dim << '\n';
  std::vector<float> rows;
  std::string line;
  for (std::size_t first = 0; first < words.size(); first += kRowsPerRead) {
    const std::size_t count = std::min(kRowsPerRead, words.size() - first);
    rows.resize(count * dim);
    read_rows(first, rows);
    for (std::size_t i = 0; i < count; ++i) {
      const std::span<const float> row = std::span<const float>(rows).subspan(i * dim, dim);
      line = words[first + i] + ' ';
      if (format == VectorsFormat::binary) {
        line.append(reinterpret_cast<const char*>(row.data()), row.size_bytes());
      } else {
        for (const float value : row) fmt::format_to(std::back_inserter(line), "{:.6f} ", value);
      }
      file << line << '\n';
    }
  }
  file.close();
  if (!file) throw not_writable(path);
}

}  // namespace capstan::train::word2vec
