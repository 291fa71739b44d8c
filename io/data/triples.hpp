// triples.hpp -- reads a graph from tab-separated train.txt, valid.txt and test.txt.
#pragma once

#include <filesystem>

#include "io/data/graph.hpp"

namespace capstan::io {

/// Each line is `head<TAB>relation<TAB>tail` and ends with LF or CRLF; the last line end may be missing.
/// Names are indexed in order of first occurrence in train, then valid, then test. Throws Error: not_found
/// (directory or file), permission_denied, out_of_range (2^31 entities or more), or invalid_argument. The
/// latter is thrown for an empty file and, with a location such as "train.txt:17", for a malformed line, an
/// empty field or a NUL byte.
Graph read_graph(const std::filesystem::path& directory);

}  // namespace capstan::io
