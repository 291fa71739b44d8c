// master.hpp -- checkpoint.h5: virtual datasets that show every variable and slot as one array.
#pragma once

#include <filesystem>

#include "io/hdf5/manifest.hpp"

namespace capstan::io {

/// Writes `<folder>/checkpoint.h5` over the parts beside it and fsyncs it. That of an increment shows the
/// rows that changed, one after the other, and their numbers.
void write_master(const std::filesystem::path& folder, const Manifest& manifest);

}  // namespace capstan::io
