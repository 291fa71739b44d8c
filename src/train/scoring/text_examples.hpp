// text_examples.hpp -- examples in lines of text, read as a training program reads its files.
#pragma once

#include <span>
#include <string>

#include "train/sparse/examples.hpp"

namespace capstan::train {

/// Reads one example from each line of `format`. Throws Error: invalid_argument "lines:N: ...";
/// internal if there is no memory for the lines.
SparseExamples read_lines(std::span<const std::string> lines, const SparseFormat& format);

}  // namespace capstan::train
