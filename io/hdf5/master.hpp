// master.hpp -- checkpoint.h5: virtual datasets that show every variable and slot as one array.
#pragma once

#include <filesystem>

#include "io/hdf5/manifest.hpp"

namespace capstan::io {

/// Writes and fsyncs `<directory>/checkpoint.h5`, which maps the parts beside it. For an increment, it shows
/// only the rows that changed, consecutively, and their row numbers.
void write_master(const std::filesystem::path& directory, const Manifest& manifest);

}  // namespace capstan::io
