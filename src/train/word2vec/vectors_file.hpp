// vectors_file.hpp -- the text and binary formats of the word2vec program, which other tools read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace capstan::train::word2vec {

enum class VectorsFormat : std::uint8_t { text, binary };

/// Throws Error(permission_denied) if the file cannot be written. Creates it if it does not exist.
void check_writable(const std::string& path);

/// Writes "rows dim", then a line for each word: its bytes, a space, and its row as text of 6 decimals or as
/// float32 of the host. `read_rows` fills the rows from `first` on. Throws Error(permission_denied) for a
/// file that cannot be written, and what `read_rows` throws.
void write_vectors(const std::string& path, VectorsFormat format, const std::vector<std::string>& words,
                   std::size_t dim,
                   const std::function<void(std::uint64_t first, std::span<float> rows)>& read_rows);

}  // namespace capstan::train::word2vec
