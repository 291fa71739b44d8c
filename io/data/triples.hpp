// triples.hpp -- reads a graph from tab-separated train.txt, valid.txt and test.txt.
#pragma once

#include <filesystem>

#include "io/data/graph.hpp"

namespace capstan::io {

/// One `head<TAB>relation<TAB>tail` a line, ended by LF or CRLF; the last end may be missing. Numbers are
/// given in order of first appearance in train, then valid, then test. Throws Error: not_found (folder or
/// file), permission_denied, invalid_argument with "train.txt:17: ..." for an empty file, a line of another
/// form, an empty field or a NUL byte.
Graph read_graph(const std::filesystem::path& directory);

}  // namespace capstan::io
